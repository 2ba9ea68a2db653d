// Puts the parts together: each function below fills one section from the job's value.

const byId = (id) => document.getElementById(id);
const SPANS = ['queued', 'work', 'transfer', 'window', 'handover', 'step'];
const SPAN_WORDS = { queued: 'waits for a worker', work: 'is made', transfer: 'travels',
  window: 'waits in the window', handover: 'waits for the rank', step: 'is trained on' };
const WAIT_WORDS = { noWorker: 'no CPU worker was there', workers: 'the batch was in work',
  transfer: 'the batch was on its way', handover: 'the rank was not yet awake' };
const PHASE_WORDS = { wait: 'waiting for data', hostToDevice: 'to the device', forward: 'forward',
  backward: 'backward', allReduce: 'all-reduce', optimizer: 'optimizer', checkpoint: 'checkpoint',
  evaluation: 'evaluation', other: 'other' };

const sortedKeys = (object) => Object.keys(object || {}).map(Number).sort((a, b) => a - b);
const parts = (object, words) => Object.keys(words).map((key) => [words[key], (object || {})[key] || 0]);

const view = {
  rate: new LineChart(byId('rate-chart'), { name: 'Samples a second', x: (v) => show.clock(v / 10),
    y: (v) => show.number(v), empty: 'No step has been made yet.' }),
  wait: new SplitBar(byId('wait-bar'), 'No rank has waited for data.'),
  phase: new SplitBar(byId('phase-bar'), 'No step has been made yet.'),
  loss: new LineChart(byId('loss-chart'), { name: 'Loss', x: (v) => `step ${show.count(v)}`,
    y: (v) => show.number(v), empty: 'No loss has been told yet.' }),
  accuracy: new LineChart(byId('accuracy-chart'), { name: 'Accuracy', most: 1,
    x: (v) => `step ${show.count(v)}`, y: (v) => show.percent(v * 100),
    empty: 'No evaluation has been made yet.' }),
  overview: new HeatMap(byId('overview-map'), { name: 'How busy each process is', tall: 14,
    empty: 'No process has told how busy it is.', onChoose: (row) => choose(row.first) }),
  cores: new HeatMap(byId('core-map'), { name: 'How busy each core of its machine is', tall: 14, number: true,
    empty: 'It has not told how busy the cores of its machine are.' }),
  gpus: new HeatMap(byId('gpu-map'), { name: 'How busy each of its GPUs is', tall: 18, number: true,
    empty: 'It tells of no GPU.' }),
  table: new MemberTable(byId('worker-table'), { filter: byId('filter'), count: byId('worker-count'),
    onChoose: (name) => choose(name, true) }),
};
let job = null;       // the newest value
let members = [];     // [{name, row}]
let chosen = decodeURIComponent(location.hash.slice(1));
let wanted = Boolean(chosen);  // by the viewer; else the first choice is made anew until rates are known
let detail = null;    // of the chosen member: {name, span, columns, ...}
let drawn = false;    // since the last value

function drawHead() {
  setText(byId('job'), job.job);
  document.title = `${job.job}: ${job.state}`;
  const badge = byId('state');
  badge.className = `badge ${job.state}`;
  setText(badge, job.state);
  const message = byId('message');
  message.hidden = !job.message;
  message.className = `reason ${job.state}`;
  setText(message, job.message || '');
}

function drawFindings() {
  const list = byId('finding-list');
  const found = job.findings || [];
  const text = JSON.stringify(found);
  setText(byId('verdict'), job.verdict ? job.verdict[0].toUpperCase() + job.verdict.slice(1) + '.' : '');
  setText(byId('finding-note'), found.length
    ? 'What still holds first, then causes before what they explain, then by cost.' : job.step > 0
      ? 'No rule has found anything to change.' : 'Rules look at the job once it makes steps.');
  if (text === list.dataset.drawn) return;
  list.dataset.drawn = text;
  list.replaceChildren(...found.map((finding) => {
    const cost = [finding.seconds ? `${show.seconds(finding.seconds)} of training so far` : '',
      finding.dollars ? show.dollars(finding.dollars) : ''].filter(Boolean).join(', ');
    const item = make('li', { className: finding.active ? '' : 'past' },
      make('div', {}, make('b', {}, finding.rule),
        make('span', { className: 'note' }, [finding.member, cost, finding.active ? '' : 'no longer']
          .filter(Boolean).join(' · '))),
      make('div', {}, finding.message));
    if (finding.remedy) item.append(make('div', { className: 'remedy' }, finding.remedy));
    if (finding.field) item.append(make('div', { className: 'note' }, 'Field: ', make('code', {}, `spec.${finding.field}`)));
    return item;
  }));
}

function drawTiles() {
  const share = job.totalSteps ? job.step / job.totalSteps * 100 : 0;
  byId('done').value = share;
  setText(byId('done-text'), job.totalSteps
    ? `step ${show.count(job.step)} of ${show.count(job.totalSteps)} (${show.percent(share)})` +
      (job.totalEpochs ? `, epoch ${job.epoch} of ${job.totalEpochs}` : '') : 'no step yet');
  setText(byId('rate'), show.number(job.samplesPerSecond));
  setText(byId('rate-note'), job.ceiling ? `without waiting ${show.number(job.ceiling)}` : '');
  setText(byId('wait'), show.percent(job.waitPercent));
  setText(byId('wait-note'), job.waitingDollars ? `${show.dollars(job.waitingDollars)} so far`
    : 'of the time of the slowest rank');
  setText(byId('eta'), job.over ? 'none' : job.etaSeconds ? show.clock(job.etaSeconds) : '–');
  setText(byId('eta-note'), `${show.clock(job.seconds)} since it was created`);
  setText(byId('loss'), show.number(job.loss));
  setText(byId('loss-note'), job.accuracy === undefined ? '' : `accuracy ${show.percent(job.accuracy * 100)}`);
  setText(byId('cost'), show.dollars(job.dollars));
  setText(byId('cost-note'), job.dollarsPerHour ? `${show.dollars(job.dollarsPerHour)} an hour`
    : 'no role has pricePerHour');
}

function drawCurves() {
  view.rate.update(sortedKeys(job.rates).map((at) => [at, job.rates[at][0]]));
  view.wait.update(parts(job.waits, WAIT_WORDS));
  view.phase.update(parts(job.phases, PHASE_WORDS));
  view.loss.update(sortedKeys(job.losses).map((step) => [step, job.losses[step]]));
  view.accuracy.update(sortedKeys(job.evaluations).map((step) => [step, job.evaluations[step][2]]));
}

// The newest columns, from left to right, of each slot.
function heatColumns(kind) {
  const columns = (job.heat || {})[kind] || {};
  const keys = sortedKeys(columns);
  if (keys.length === 0) return { keys: [], level: () => -1 };
  const last = keys[keys.length - 1];
  const first = Math.max(keys[0], last - STRIP_COLUMNS + 1);
  return { keys: Array.from({ length: last - first + 1 }, (_, i) => first + i),
    level: (key, slot) => heatLevel((columns[key] || '')[slot]) };
}

function drawMembers() {
  members = Object.entries(job.members || {}).map(([name, row]) => ({ name, row }));
  const { keys, level } = heatColumns('columns');
  const strips = new Map(members.map((m) => [m.name, [
    ...Array(STRIP_COLUMNS - keys.length).fill(-1), ...keys.map((key) => level(key, m.row[ROW.slot]))]]));
  if (!job.members[chosen]) wanted = false;
  if (!wanted) {
    const first = firstChoice();
    if (first !== chosen) detail = null;
    chosen = first;
    wanted = members.some((m) => m.row[ROW.rate] !== null && m.row[ROW.rate] !== undefined);
  }
  view.table.update(members, strips, chosen);
  drawOverview();
  drawChoice();
}

// Whom a finding is about; else the slowest to be seen: the CPU worker that makes least, else anybody.
function firstChoice() {
  const found = (job.findings || []).find((finding) => finding.member && job.members[finding.member]);
  if (found) return found.member;
  const by = (m) => (m.row[ROW.rank] ? Infinity : m.row[ROW.rate] ?? Infinity);
  const first = [...members].sort((a, b) => by(a) - by(b) || MemberTable.collator.compare(a.name, b.name))[0];
  return first ? first.name : '';
}

function drawOverview() {
  const { keys, level } = heatColumns(byId('heat-kind').value);
  const shown = view.table.shown;
  const inBand = Math.max(Math.ceil(shown.length / 80), 1);
  const rows = [];
  for (let at = 0; at < shown.length; at += inBand) {
    const band = shown.slice(at, at + inBand);
    const levels = keys.map((key) => {
      const known = band.map((m) => level(key, m.row[ROW.slot])).filter((l) => l >= 0);
      return known.length ? known.reduce((a, b) => a + b) / known.length : -1;
    });
    const last = band[band.length - 1].name;
    rows.push({ name: band.length === 1 ? last : `${band[0].name} to ${last}`, first: band[0].name, levels });
  }
  const span = (job.heat || {}).span || 2;
  view.overview.update({ rows, columns: keys.map((key) => show.clock(key * span)) });
}

function drawChoice() {
  const select = byId('member-choice');
  const names = members.map((m) => m.name).sort(MemberTable.collator.compare);
  if (select.dataset.names !== names.join(' ')) {
    select.dataset.names = names.join(' ');
    select.replaceChildren(...names.map((name) => make('option', { value: name }, name)));
  }
  if (select.value !== chosen) select.value = chosen;
}

function drawDetail() {
  if (!detail) return;
  const byte = (text, at) => (at < text.length ? text.charCodeAt(at) / 255 * 63 : -1);
  const map = (place, word, into) => {
    const count = Math.max(0, ...detail.columns.map((column) => column[place].length));
    const rows = Array.from({ length: count }, (_, at) => (
      { name: `${word} ${at}`, levels: detail.columns.map((column) => byte(column[place], at)) }));
    into.update({ rows, columns: detail.columns.map((column) => show.clock(column[0])) });
  };
  map(2, 'core', view.cores);
  map(3, 'GPU', view.gpus);
  const groups = Object.entries(detail.groups).filter(([, seconds]) => seconds > 0).sort((a, b) => b[1] - a[1]);
  setText(byId('member-groups'), groups.length ? 'CPU time of its threads: ' +
    groups.map(([name, seconds]) => `${name} ${show.seconds(seconds)}`).join(', ') : '');
  fillLog(byId('member-log'), detail.log, false);
}

// Stays at the end, unless somebody has scrolled up to read.
function fillLog(element, lines, names) {
  const keys = sortedKeys(lines);
  const text = keys.length === 0 ? 'Nothing has been printed yet.' : keys.map((key) => {
    const [member, at, line] = lines[key];
    const time = at ? new Date(at).toISOString().slice(11, 19) + ' ' : '';
    return names ? `${time}${member}  ${line}` : time + line;
  }).join('\n');
  if (text === element.textContent) return;
  const atEnd = element.scrollTop + element.clientHeight >= element.scrollHeight - 4;
  setText(element, text);
  if (atEnd) element.scrollTop = element.scrollHeight;
}

function drawLives() {
  const lives = job.lives || {};
  const parent = byId('waterfall');
  const text = JSON.stringify(lives);
  if (parent.dataset.drawn === text) return;
  parent.dataset.drawn = text;
  if (!lives.median && !lives.latest) {
    parent.replaceChildren(make('p', { className: 'empty' }, 'No batch has been followed yet: one of a hundred is.'));
    return;
  }
  const grid = make('div', { className: 'falls' });
  const add = (title, spans, more) => {
    if (!spans) return;
    const whole = spans.reduce((a, b) => a + b, 0) || 1;
    grid.append(make('h3', {}, `${title}: ${show.seconds(whole)}`));
    let before = 0;
    spans.forEach((seconds, index) => {
      const svg = makeSvg('svg', { viewBox: '0 0 1000 14', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
      const place = { y: 1, height: 12, x: before / whole * 1000, width: Math.max(seconds / whole * 1000, 2) };
      svg.append(makeSvg('rect', place));
      svg.firstChild.style.fill = `var(--c${index})`;
      before += seconds;
      grid.append(make('span', {}, SPAN_WORDS[SPANS[index]]), svg,
        make('span', { className: 'num' }, show.seconds(seconds) + ((more || {})[index] || '')));
    });
  };
  add(`Median of ${show.count(lives.batches)} batches`, lives.median,
    lives.p95 && lives.p95.map((seconds) => ` (p95 ${show.seconds(seconds)})`));
  add(`Latest, step ${show.count(lives.latestStep)} by ${lives.latestWorker || 'the rank itself'}`, lives.latest,
    { 1: lives.latestRead ? ` (${show.seconds(lives.latestRead)} for storage)` : '' });
  parent.replaceChildren(grid);
}

function drawOperators() {
  const parent = byId('operator-table');
  const text = JSON.stringify(job.operators);
  if (parent.dataset.drawn === text) return;
  parent.dataset.drawn = text;
  if (!(job.operators || []).length) {
    parent.replaceChildren(make('p', { className: 'empty' }, 'The pipeline has no operators.'));
    return;
  }
  const most = Math.max(...job.operators.map((op) => op.coreSeconds || 0));
  const head = ['Operator', 'Runs on', 'Of one core, a sample', 'Cores in all'].map((name, index) => (
    make('th', { scope: 'col', className: index > 1 ? 'num' : '' }, name)));
  const rows = job.operators.map((op) => make('tr', {},
    make('td', { className: 'wide', title: op.reason || '' }, op.name),
    make('td', {}, op.where === 'Trainer' ? 'trainers' : op.where ? 'CPU workers' : '–'),
    make('td', { className: 'num' + (op.coreSeconds && op.coreSeconds === most && job.operators.length > 1 ? ' odd' : '') },
      show.seconds(op.coreSeconds) + (op.coreSeconds === most && most > 0 && job.operators.length > 1 ? ' (most)' : '') +
      (op.pythonSeconds ? `, ${show.seconds(op.pythonSeconds)} of it Python` : '')),
    make('td', { className: 'num' }, show.number(op.cores, 2))));
  parent.replaceChildren(make('table', {}, make('thead', {}, make('tr', {}, ...head)), make('tbody', {}, ...rows)));
}

function drawEvents() {
  const list = byId('event-list');
  const text = JSON.stringify(job.events);
  if (list.dataset.drawn === text) return;
  list.dataset.drawn = text;
  if (!(job.events || []).length) {
    list.replaceChildren(make('li', { className: 'empty' }, 'Nothing has happened.'));
    return;
  }
  list.replaceChildren(...job.events.slice().reverse().map(([at, kind, member, what, recovery]) => make('li', {},
    make('time', {}, show.clock(at)), make('b', {}, member ? `${kind}, ${member}: ` : `${kind}: `), what,
    recovery === null ? '' : ` (over after ${show.seconds(recovery)})`)));
}

function draw() {
  drawn = true;
  if (!job) return;
  drawHead();
  drawFindings();
  drawTiles();
  drawCurves();
  drawMembers();
  drawLives();
  drawOperators();
  drawEvents();
  fillLog(byId('log'), job.log, true);
}

function choose(name, go) {
  if (name !== chosen) detail = null;
  chosen = name;
  wanted = true;
  history.replaceState(null, '', `#${encodeURIComponent(name)}`);
  drawMembers();
  ask();
  if (go) byId('member').scrollIntoView({ block: 'nearest' });
}

// Only the member that is shown is asked for in detail, and of it what is new.
async function ask() {
  const span = byId('member-span').value;
  const name = chosen;
  if (!name || document.hidden) return;
  const same = detail && detail.name === name && detail.span === span;
  const last = same && span === 'recent' && detail.columns.length ? detail.columns[detail.columns.length - 1][0] : '';
  try {
    const answer = await fetch(`live/member.json?name=${encodeURIComponent(name)}&span=${span}&after=${last}`,
      { cache: 'no-store', signal: AbortSignal.timeout(5000) });
    if (!answer.ok || name !== chosen || span !== byId('member-span').value) return;
    const told = await answer.json();
    told.columns = told.columns.map(([at, wide, cores, gpus]) => [at, wide, atob(cores), atob(gpus)]);
    if (last !== '' && detail) {
      const kept = detail.columns.filter((column) => column[0] <= last && column[0] > told.seconds - 120);
      told.columns = [...kept, ...told.columns.filter((column) => column[0] > last)];
    }
    detail = { ...told, span };
    drawDetail();
  } catch (error) {
    // The connection of the events says that the job is out of reach.
  }
}

byId('member-choice').addEventListener('change', (event) => choose(event.target.value));
byId('member-span').addEventListener('change', () => { detail = null; ask(); });
byId('heat-kind').addEventListener('change', drawOverview);
byId('filter').addEventListener('input', () => { if (job) drawOverview(); });
document.addEventListener('visibilitychange', () => { if (!document.hidden) { draw(); ask(); } });
setInterval(() => { if (job && !job.over) ask(); }, 2000);

new Connection('live/events', (value) => {
  job = value;
  drawn = false;
  if (!document.hidden) requestAnimationFrame(() => { if (!drawn) draw(); });
  if (!detail) ask();
}, (text, lost) => {
  const link = byId('link');
  link.classList.toggle('lost', lost);
  setText(link, text);
});
