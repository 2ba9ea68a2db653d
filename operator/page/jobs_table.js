// The table of all jobs: sorted and filtered, and only the rows that are seen are in the document.

const ROW_PIXELS = 28;
const KINDS = ['failed', 'stalled', 'starved', 'flagged', 'waiting', 'training', 'suspended', 'succeeded'];
const KIND_TITLES = ['', 'no step for long', 'ranks wait for data a tenth of their time or more',
  'a rule has found what to change', 'for a place, pods or a restart', '', '', ''];
const FAILED = 0, SUCCEEDED = 7;

const collator = new Intl.Collator('en', { numeric: true });
const progressText = (job) => (job.total > 0
  ? `${Math.floor(job.step / job.total * 100)} % of ${show.number(job.total)}`
  : job.step > 0 ? `step ${show.count(job.step)}` : '–');
// $512,000, $1.25
const money = (value) => (value >= 1000 ? `$${show.count(Math.round(value))}` : show.dollars(value));
const whyText = (job) => (job.finding
  ? [job.finding.rule, job.finding.active ? '' : ' (no longer)', job.findings > 1 ? ` and ${job.findings - 1} more` : '',
    job.finding.message ? `: ${job.finding.message}` : ''].join('') : job.note);
// 45s, 12m, 3h05m, 4d02h
function ageText(seconds) {
  if (seconds === null) return '–';
  const two = (n) => String(Math.floor(n)).padStart(2, '0');
  if (seconds < 60) return `${Math.floor(seconds)}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)}h${two(seconds / 60 % 60)}m`;
  const days = Math.floor(seconds / 86400);
  return days < 100 ? `${days}d${two(seconds / 3600 % 24)}h` : `${days}d`;
}

// Among jobs of one kind: what costs most, then what waits most; those that are over, the newest first.
function byAttention(a, b) {
  if (a.kind !== b.kind) return a.kind - b.kind;
  const over = a.kind === FAILED || a.kind === SUCCEEDED;
  const waste = over ? 0 : (b.waited || 0) - (a.waited || 0) || (b.wait || 0) - (a.wait || 0);
  return waste || (over ? b.created - a.created : a.created - b.created);
}

// name, title, what to sort and show by; `odd` marks what a person should look at.
const COLUMNS = [
  { name: 'Namespace', value: (j) => j.space, text: (j) => j.space, wide: true },
  { name: 'Job', value: (j) => j.name, text: (j) => j.name, button: true },
  { name: 'State', title: 'What needs attention first', order: byAttention, mark: true,
    text: (j) => (['starved', 'flagged'].includes(KINDS[j.kind]) ? `${j.state}, ${KINDS[j.kind]}` : j.state) },
  { name: 'Queue', value: (j) => j.queue || null, wide: true,
    text: (j) => (j.queue ? [j.queue, j.queueState].filter(Boolean).join(': ') : '–') },
  { name: 'Progress', title: 'Steps that have been made', falls: true, bar: true, text: progressText,
    value: (j) => (j.total > 0 ? j.step / j.total : null) },
  { name: 'Samples/s', number: true, value: (j) => j.rate, text: (j) => show.number(j.rate) },
  { name: 'Waits', title: 'Share of the time in which ranks wait for data', number: true, value: (j) => j.wait,
    text: (j) => show.percent(j.wait), odd: (j) => KINDS[j.kind] === 'starved' },
  { name: 'Dollars', number: true, value: (j) => j.dollars, text: (j) => money(j.dollars) },
  { name: 'Age', number: true, value: (j) => j.age(), text: (j) => ageText(j.age()) },
  { name: 'Finding, or why', value: (j) => whyText(j) || null, wide: true, text: (j) => whyText(j) || '–' },
];
const STATE = 2;

// What unfolds below a job.
function detailOf(job) {
  const box = make('div', { className: 'detail' });
  const add = (text, className = '') => text && box.append(make('p', { className }, text));
  add(job.note);
  if (job.finding) {
    const { rule, message, remedy, field, member, seconds, dollars, active } = job.finding;
    const cost = [seconds ? `${show.seconds(seconds)} of training` : '', dollars ? money(dollars) : '']
      .filter(Boolean).join(', ');
    box.append(make('p', {}, make('b', {}, member ? `${rule}, ${member}: ` : `${rule}: `), message,
      make('span', { className: 'note' }, [cost ? ` (${cost} so far)` : '', active ? '' : ' (no longer)'].join(''))));
    add(remedy, 'remedy');
    if (field) box.append(make('p', { className: 'note' }, 'Field: ', make('code', {}, `spec.${field}`)));
  }
  add([job.registered ? `${job.registered} processes registered` : '',
    job.attempt > 1 ? `attempt ${job.attempt}` : '', job.restarts ? `${job.restarts} restarts` : '',
    job.eta ? `${show.clock(job.eta)} left` : '', job.loss === null ? '' : `loss ${show.number(job.loss)}`,
    job.waited ? `${money(job.waited)} for time in which ranks waited for data` : '']
    .filter(Boolean).join(' · '), 'note');
  box.append(make('p', { className: 'note' }, 'More: ', make('code', {}, `kubectl hetero status ${job.name} -n ${job.space}`)));
  if (job.head) {
    box.append(make('p', { className: 'note' }, 'Its own page: ',
      make('code', {}, `kubectl -n ${job.space} port-forward pod/${job.head} 7072`), ', then http://localhost:7072/live'));
  }
  return box;
}

class JobTable {
  // `count(shown, all)` after each change of what is shown.
  constructor(parent, count) {
    Object.assign(this, { count, jobs: [], shown: [], matches: () => true, sortBy: STATE, falling: false,
      active: '', open: new Set(), heights: new Map(), rows: new Map(), tops: [0] });
    this.head = make('tr');
    COLUMNS.forEach((column, index) => {
      const button = make('button', { type: 'button', title: column.title || '' }, column.name);
      button.addEventListener('click', () => this.sort(index));
      this.head.append(make('th', { scope: 'col', className: column.number ? 'num' : '' }, button));
    });
    this.above = this.makeSpacer();
    this.below = this.makeSpacer();
    this.body = make('tbody', {}, this.above, this.below);
    this.table = make('table', {}, make('thead', {}, this.head), this.body);
    this.scroll = make('div', { className: 'scroll', role: 'region', tabIndex: 0 }, this.table);
    this.scroll.setAttribute('aria-label', 'Jobs');
    this.empty = make('p', { className: 'empty' });
    parent.append(this.scroll, this.empty);
    this.scroll.addEventListener('scroll', () => this.draw());
    this.scroll.addEventListener('keydown', (event) => this.walk(event));
    this.width = 0;
    new ResizeObserver(() => {
      if (this.scroll.clientWidth === this.width) return this.draw();
      this.width = this.scroll.clientWidth;
      this.heights.clear();
      this.place();
    }).observe(this.scroll);
  }

  makeSpacer() {
    const spacer = make('tr', { className: 'spacer' }, make('td', { colSpan: COLUMNS.length }));
    spacer.setAttribute('aria-hidden', 'true');
    return spacer;
  }

  sort(index) {
    this.falling = index === this.sortBy ? !this.falling : Boolean(COLUMNS[index].number || COLUMNS[index].falls);
    this.sortBy = index;
    this.arrange();
  }

  update(jobs, matches) {
    Object.assign(this, { jobs, matches });
    this.arrange();
  }

  arrange() {
    const { value, order } = COLUMNS[this.sortBy];
    const sign = this.falling ? -1 : 1;
    const compare = (a, b) => {
      if (order) return sign * order(a, b);
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);  // unknown: last
      return sign * (typeof x === 'number' ? x - y : collator.compare(x, y));
    };
    this.shown = this.jobs.filter(this.matches)
      .sort((a, b) => compare(a, b) || collator.compare(a.key, b.key));
    this.count(this.shown, this.jobs);
    setText(this.empty, this.shown.length ? '' : this.jobs.length ? 'No job is like this.' : 'There are no jobs.');
    [...this.head.children].forEach((cell, index) => {
      const sorted = index === this.sortBy;
      if (sorted) cell.setAttribute('aria-sort', this.falling ? 'descending' : 'ascending');
      else cell.removeAttribute('aria-sort');
      setText(cell.firstChild, COLUMNS[index].name + (sorted ? (this.falling ? ' ▼' : ' ▲') : ''));
    });
    this.table.setAttribute('aria-rowcount', String(this.shown.length + 1));
    this.place();
  }

  // Where each row begins: those that are unfolded are higher.
  place() {
    this.tops = [0];
    this.shown.forEach((job, at) => {
      const more = this.open.has(job.key) ? this.heights.get(job.key) || 4 * ROW_PIXELS : 0;
      this.tops.push(this.tops[at] + ROW_PIXELS + more);
    });
    this.draw();
  }

  // The row at that height.
  rowAt(pixels) {
    let [low, high] = [0, this.shown.length];
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle] <= pixels) low = middle;
      else high = middle;
    }
    return low;
  }

  toggle(key) {
    if (!this.open.delete(key)) this.open.add(key);
    this.active = key;
    this.place();
    this.focusActive();
  }

  walk(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const last = this.shown.length - 1;
    const now = this.shown.findIndex((job) => job.key === this.active);
    const to = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: last, PageDown: now + 10,
      PageUp: now - 10 }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    const at = Math.min(Math.max(to, 0), last);
    this.active = this.shown[at].key;
    const room = this.scroll.clientHeight - 2 * ROW_PIXELS;  // the heading covers one
    if (this.tops[at] < this.scroll.scrollTop) this.scroll.scrollTop = this.tops[at];
    const lowest = Math.min(this.tops[at + 1] - ROW_PIXELS, this.tops[at] + room);
    if (lowest > this.scroll.scrollTop + room) this.scroll.scrollTop = lowest - room;
    this.draw();
    this.focusActive();
  }

  focusActive() {
    const entry = this.rows.get(this.active);
    if (entry) entry.button.focus({ preventScroll: true });
  }

  draw() {
    const focused = this.body.contains(document.activeElement);
    const top = this.scroll.scrollTop;
    const first = Math.max(this.rowAt(top) - 2, 0);
    const end = Math.min(this.rowAt(top + (this.scroll.clientHeight || 400)) + 3, this.shown.length);
    const wanted = this.shown.slice(first, end);
    if (!this.shown.some((job) => job.key === this.active)) this.active = this.shown.length ? this.shown[0].key : '';
    const keys = new Set(wanted.map((job) => job.key));
    for (const [key, entry] of this.rows) {
      if (keys.has(key)) continue;
      entry.row.remove();
      entry.more.remove();
      this.rows.delete(key);
    }
    this.above.firstChild.style.height = `${this.tops[first] || 0}px`;
    this.below.firstChild.style.height = `${this.tops[this.shown.length] - (this.tops[end] || 0)}px`;
    let after = this.above;
    const put = (row) => {
      if (after.nextElementSibling !== row) after.after(row);
      after = row;
    };
    wanted.forEach((job, index) => {
      const entry = this.rows.get(job.key) || this.makeRow(job.key);
      this.fill(entry, job, first + index);
      put(entry.row);
      if (this.open.has(job.key)) put(entry.more);
      else entry.more.remove();
    });
    if (focused && !this.body.contains(document.activeElement)) {
      if (this.rows.has(this.active)) this.focusActive();
      else this.scroll.focus({ preventScroll: true });
    }
    this.measure(wanted);
  }

  // Heights of what is unfolded are known once it is there.
  measure(wanted) {
    let changed = false;
    for (const { key } of wanted) {
      if (!this.open.has(key)) continue;
      const height = this.rows.get(key).more.offsetHeight;
      if (!height || this.heights.get(key) === height) continue;
      this.heights.set(key, height);
      changed = true;
    }
    if (changed) this.place();
  }

  makeRow(key) {
    const row = make('tr');
    const entry = { row, more: make('tr', { className: 'more' }, make('td', { colSpan: COLUMNS.length })), button: null };
    COLUMNS.forEach((column) => {
      const cell = make('td', { className: column.number ? 'num' : '' });
      if (column.button) {
        entry.button = make('button', { type: 'button' });
        entry.button.addEventListener('click', () => this.toggle(key));
        cell.append(entry.button);
      } else if (column.bar) {
        cell.append(make('progress', { max: 1 }), make('span'));
        cell.firstChild.setAttribute('aria-hidden', 'true');  // the text says the same
      } else if (column.mark) {
        cell.append(make('span'));
      }
      row.append(cell);
    });
    row.addEventListener('focusin', () => { this.active = key; });
    this.rows.set(key, entry);
    return entry;
  }

  fill(entry, job, at) {
    const { row, more, button } = entry;
    row.setAttribute('aria-rowindex', String(at + 2));
    COLUMNS.forEach((column, index) => {
      const cell = row.children[index];
      const odd = Boolean(column.odd && column.odd(job));
      const text = column.text(job) + (odd ? ' !' : '');
      cell.classList.toggle('odd', odd);
      if (column.wide || column.button) cell.title = text;
      if (column.bar) {
        cell.firstChild.value = job.total > 0 ? job.step / job.total : 0;
        cell.firstChild.hidden = !(job.total > 0);
        setText(cell.lastChild, text);
      } else if (column.mark) {
        cell.firstChild.className = `mark k-${KINDS[job.kind]}`;
        setText(cell.firstChild, text);
      } else {
        setText(column.button ? button : cell, text);
      }
    });
    const open = this.open.has(job.key);
    button.tabIndex = job.key === this.active ? 0 : -1;
    button.setAttribute('aria-expanded', String(open));
    if (!open || entry.drawn === job.version) return;
    entry.drawn = job.version;
    more.firstChild.replaceChildren(detailOf(job));
  }
}
