#pragma once

namespace hetero::insight {

// The report page's style sheet. Free of & and <, so that the page stays well-formed XML.
inline constexpr char kPageStyle[] = R"css(
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --line: #e1e4ea; --ink: #1b1f27; --soft: #5c6675;
  --accent: #2563eb;
  --good: #15803d; --good-soft: #dcf5e3; --bad: #b42318; --bad-soft: #fde5e2; --warn: #92570a;
  --warn-soft: #fdf0d5; --bar: #dbe6fd; --evaluation: #c2410c;
  --p-wait: #dc4a3d; --p-hostToDevice: #e8a33d; --p-forward: #3b82f6; --p-backward: #1e4fb8;
  --p-allReduce: #8b5cf6; --p-optimizer: #14a08f; --p-checkpoint: #8a94a6; --p-evaluation: #c56a9f;
  --p-other: #c5cbd6; }
@media (prefers-color-scheme: dark) { :root {
  --page: #0f1218; --card: #181c24; --line: #2c323e; --ink: #e7eaf0; --soft: #9aa5b5;
  --accent: #6ea0ff;
  --good: #6fd695; --good-soft: #14351f; --bad: #ff9a8f; --bad-soft: #451a17; --warn: #f3c26b;
  --warn-soft: #3d2d0d; --bar: #24365c; --evaluation: #fb923c;
  --p-wait: #f0695d; --p-hostToDevice: #f0b659; --p-forward: #6ea8ff; --p-backward: #3f74e0;
  --p-allReduce: #a78bfa; --p-optimizer: #2fbfac; --p-checkpoint: #7b8698; --p-evaluation: #d887b4;
  --p-other: #4b5463; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial,
  sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 48px; display: grid; gap: 16px;
  grid-template-columns: repeat(2, minmax(0, 1fr)); }
header, section { grid-column: 1 / -1; min-width: 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 16px 18px; }
section.half { grid-column: span 1; }
@media (max-width: 760px) { main .tiles { grid-template-columns: repeat(2, minmax(0, 1fr));
  } section.half { grid-column: 1 / -1; } main { padding: 18px 12px 32px; } }
h1 { font-size: 26px; line-height: 1.25; margin: 0; letter-spacing: -0.01em;
  overflow-wrap: anywhere; }
h2 { font-size: 15px; margin: 0 0 2px; }
p { margin: 4px 0; }
.title { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 12px; }
.badge { font-size: 13px; font-weight: 600; border-radius: 999px; padding: 2px 11px;
  background: var(--warn-soft);
  color: var(--warn); }
.badge.Succeeded { background: var(--good-soft); color: var(--good); }
.badge.Failed { background: var(--bad-soft); color: var(--bad); }
.sub, .note, .empty { color: var(--soft); font-size: 13px; }
.reason { border-left: 3px solid var(--bad); background: var(--bad-soft); padding: 8px 12px;
  margin-top: 12px;
  border-radius: 0 6px 6px 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.reason.Stopped { border-color: var(--warn); background: var(--warn-soft); }
.verdict { font-size: 16px; margin-top: 10px; }
.tiles { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 10px;
  margin-top: 16px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 10px 14px; min-width: 0; }
.tile b { display: block; font-size: 22px; font-weight: 650; line-height: 1.3;
  font-variant-numeric: tabular-nums; }
.tile span { color: var(--soft); font-size: 12.5px; display: block; line-height: 1.4; }
.mono, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono",
  monospace; }
.mono { font-size: 13px; overflow-wrap: anywhere; }
.chart { position: relative; height: 210px; margin: 12px 8px 40px 58px; }
.chart svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: hidden; }
.chart span { position: absolute; font-size: 12px; line-height: 1; color: var(--soft);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.chart .y { right: 100%; margin-right: 8px; transform: translateY(50%); }
.chart .x { top: 100%; margin-top: 8px; transform: translateX(-50%); }
.chart .xname { top: 100%; margin-top: 25px; left: 50%; transform: translateX(-50%); }
path { fill: none; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
path.grid { stroke: var(--line); stroke-width: 1; }
path.raw { stroke: var(--accent); stroke-opacity: 0.38; stroke-width: 1.2; }
path.line, path.smooth { stroke: var(--accent); stroke-width: 2; }
path.dots { stroke: var(--evaluation); stroke-width: 8; stroke-linecap: round; }
rect.band { fill: var(--accent); fill-opacity: 0; }
rect.band:hover { fill-opacity: 0.14; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: 13px; color: var(--soft);
  margin: 8px 0 0; }
.legend i { display: inline-block; width: 18px; height: 0; border-top: 2.5px solid var(--accent);
  margin-right: 6px;
  vertical-align: middle; }
.legend i.raw { opacity: 0.4; }
.legend i.dots { width: 9px; height: 9px; border: 0; border-radius: 50%;
  background: var(--evaluation); }
.split { display: flex; height: 30px; border-radius: 6px; overflow: hidden; margin: 12px 0 10px;
  gap: 1px; }
.split i { display: block; min-width: 1px; }
.strip { display: flex; height: 64px; gap: 1px; border-radius: 4px; overflow: hidden; }
.strip b { flex: 1 1 0; display: flex; flex-direction: column-reverse; min-width: 1px; }
.phases { display: grid; grid-template-columns: repeat(auto-fill, minmax(240px, 1fr));
  gap: 4px 20px; margin: 0;
  padding: 0; list-style: none; font-size: 14px; }
.phases.wide { grid-template-columns: repeat(auto-fill, minmax(min(100%, 380px), 1fr)); }
.phases li { display: grid; grid-template-columns: 12px 1fr auto 58px; gap: 8px;
  align-items: center; }
.phases span { white-space: nowrap; }
.phases i { width: 12px; height: 12px; border-radius: 3px; }
.phases span:nth-child(n+3) { text-align: right; font-variant-numeric: tabular-nums; }
.phases span:nth-child(3) { color: var(--soft); }
.scroll { overflow: auto; max-height: 30rem; margin-top: 6px; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 600; font-size: 12.5px; color: var(--soft); position: sticky;
  top: 0;
  background: var(--card); }
th, td { padding: 5px 10px; border-bottom: 1px solid var(--line); white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
th:first-child, td:first-child { padding-left: 0; }
.num { text-align: right; font-variant-numeric: tabular-nums; }
.wide { white-space: normal; overflow-wrap: anywhere; width: 100%; }
td.bar { background: linear-gradient(to right, var(--bar) var(--share),
  transparent var(--share)) no-repeat
  12px 3px / calc(100% - 12px) calc(100% - 6px); min-width: 116px; }
.hot { color: var(--bad); font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 3px 18px; margin: 8px 0 0;
  font-size: 14px; }
dt { color: var(--soft); }
dd { margin: 0; min-width: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
summary { cursor: pointer; font-weight: 600; }
pre { font-size: 12.5px; line-height: 1.45; overflow: auto; max-height: 40rem; margin: 10px 0 0; }
footer { grid-column: 1 / -1; color: var(--soft); font-size: 12.5px; }
a { color: var(--accent); }
@media print { body { background: none; } .scroll, pre { max-height: none; } section {
  break-inside: avoid; } }
)css";

}  // namespace hetero::insight
