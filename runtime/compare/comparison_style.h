#pragma once

namespace hetero::compare {

// Beside insight::kPageStyle: a colour for each of eight runs that the colour-blind can tell apart,
// too; further runs have the same colours with dashes. Free of & and <.
inline constexpr char kComparisonStyle[] = R"css(
:root { --run-0: #0067a5; --run-1: #c2560b; --run-2: #0b8a63; --run-3: #a8458a; --run-4: #2b9fd4;
  --run-5: #b98a00; --run-6: #6b7280; --run-7: #7c3aed; }
@media (prefers-color-scheme: dark) { :root { --run-0: #5ab1ee; --run-1: #f38b4a; --run-2: #3ecf9f;
  --run-3: #e08bc6; --run-4: #9ad8f5; --run-5: #e5bd45; --run-6: #a8b0bd; --run-7: #b79cf7; } }
path.run { stroke-width: 2; }
.c0 { --run: var(--run-0); } .c1 { --run: var(--run-1); } .c2 { --run: var(--run-2); }
.c3 { --run: var(--run-3); } .c4 { --run: var(--run-4); } .c5 { --run: var(--run-5); }
.c6 { --run: var(--run-6); } .c7 { --run: var(--run-7); }
path.run, path.dots.run { stroke: var(--run); }
path.dash1 { stroke-dasharray: 7 4; } path.dash2 { stroke-dasharray: 2 3; }
.legend i.run { border-top-color: var(--run); width: 18px; height: 0; border-radius: 0;
  background: none; }
.legend i.dash1 { border-top-style: dashed; } .legend i.dash2 { border-top-style: dotted; }
.letter { display: inline-block; min-width: 22px; padding: 0 6px; border-radius: 5px;
  text-align: center; font-weight: 650; font-size: 13px; color: var(--card);
  background: var(--run); }
.scroll { max-height: none; }
.figures td.num { min-width: 76px; }
.ratio { color: var(--soft); font-size: 12.5px; }
.times { display: grid; grid-template-columns: max-content 1fr max-content; gap: 6px 12px;
  align-items: center; margin: 12px 0; }
.times .split { margin: 0; height: 24px; }
.times span { font-variant-numeric: tabular-nums; font-size: 13px; color: var(--soft); }
.key { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 0; padding: 0; list-style: none;
  font-size: 13px; color: var(--soft); }
.key i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px;
  vertical-align: -1px; }
)css";

}  // namespace hetero::compare
