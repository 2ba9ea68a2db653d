// The table of all processes: sorted and filtered, and only the rows that are seen are drawn.

const ROW_PIXELS = 28;
const STRIP_COLUMNS = 60;  // as many as the head tells

// name, title, what to sort and show by; `odd` marks what a person should look at.
const COLUMNS = [
  { name: 'Process', value: (m) => m.name, text: (m) => m.name },
  { name: 'State', value: (m) => m.row[ROW.state], text: (m) => m.row[ROW.state],
    odd: (m) => ['Lost', 'Unreachable', 'Unfit'].includes(m.row[ROW.state]) },
  { name: 'Samples/s', number: true, value: (m) => m.row[ROW.rate],
    text: (m) => show.number(m.row[ROW.rate]) },
  { name: 'Busy cores', number: true, value: (m) => m.row[ROW.busy],
    text: (m) => (m.row[ROW.busy] === null ? '–'
      : `${show.number(m.row[ROW.busy], 2)} of ${show.number(m.row[ROW.cores])}`) },
  { name: 'GPU', number: true, value: (m) => m.row[ROW.gpu],
    text: (m) => (m.row[ROW.gpu] === null ? '–' : show.percent(m.row[ROW.gpu] * 100)) },
  { name: 'Waits', title: 'Share of its time in which a rank waits for data', number: true,
    value: (m) => m.row[ROW.wait], text: (m) => show.percent(m.row[ROW.wait]),
    odd: (m) => m.row[ROW.wait] >= 10 },
  { name: 'Queued', title: 'Threads that were ready to run and did not, on average', number: true,
    value: (m) => m.row[ROW.queued], text: (m) => show.number(m.row[ROW.queued], 2) },
  { name: 'Memory', number: true, value: (m) => m.row[ROW.memory],
    text: (m) => show.mebibytes(m.row[ROW.memory]) },
  { name: 'Network', number: true, value: (m) => m.row[ROW.network],
    text: (m) => show.rate(m.row[ROW.network]) },
  { name: 'Restarts', number: true, value: (m) => m.row[ROW.restarts],
    text: (m) => String(m.row[ROW.restarts]), odd: (m) => m.row[ROW.restarts] > 0 },
  { name: 'Last minutes', title: 'How busy its cores were, light is busy', strip: true,
    value: (m) => m.row[ROW.busy] },
];

class MemberTable {
  constructor(parent, { filter, count, onChoose }) {
    Object.assign(this, { filter, count, onChoose, members: [], shown: [], strips: new Map(),
      sortBy: 0, falling: false, active: 0, chosen: '' });
    this.head = make('tr');
    COLUMNS.forEach((column, index) => {
      const button = make('button', { type: 'button', title: column.title || '' }, column.name);
      button.addEventListener('click', () => this.sort(index));
      const cell = make('th', { scope: 'col', className: column.number ? 'num' : '' }, button);
      this.head.append(cell);
    });
    this.body = make('tbody');
    this.table = make('table', {}, make('thead', {}, this.head), this.body);
    this.scroll = make('div', { className: 'scroll', role: 'region' }, this.table);
    this.scroll.setAttribute('aria-label', 'Processes');
    parent.append(this.scroll);
    this.scroll.addEventListener('scroll', () => this.draw());
    this.body.addEventListener('keydown', (event) => this.walk(event));
    filter.addEventListener('input', () => this.arrange());
  }

  sort(index) {
    this.falling = index === this.sortBy ? !this.falling : COLUMNS[index].number === true;
    this.sortBy = index;
    this.arrange();
  }

  update(members, strips, chosen) {
    Object.assign(this, { members, strips, chosen });
    this.arrange();
  }

  arrange() {
    const words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (m) => [m.name, m.row[ROW.role], m.row[ROW.state], m.row[ROW.node]].join(' ').toLowerCase();
    const collator = MemberTable.collator;
    const { value } = COLUMNS[this.sortBy];
    const order = (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null);  // unknown: last
      const sign = this.falling ? -1 : 1;
      return sign * (typeof x === 'number' ? x - y : collator.compare(x, y)) ||
        collator.compare(a.name, b.name);
    };
    this.shown = this.members.filter((m) => words.every((word) => text(m).includes(word))).sort(order);
    const all = this.members.length;
    setText(this.count, this.shown.length === all ? `${show.count(all)} processes`
      : `${show.count(this.shown.length)} of ${show.count(all)} processes`);
    [...this.head.children].forEach((cell, index) => {
      const sorted = index === this.sortBy;
      if (sorted) cell.setAttribute('aria-sort', this.falling ? 'descending' : 'ascending');
      else cell.removeAttribute('aria-sort');
      setText(cell.firstChild, COLUMNS[index].name + (sorted ? (this.falling ? ' ▼' : ' ▲') : ''));
    });
    this.table.setAttribute('aria-rowcount', String(this.shown.length + 1));
    this.draw();
  }

  walk(event) {
    const last = this.shown.length - 1;
    const to = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, Home: 0, End: last,
      PageDown: this.active + 10, PageUp: this.active - 10 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.active = Math.min(Math.max(to, 0), last);
    const top = this.active * ROW_PIXELS;
    const room = this.scroll.clientHeight - 2 * ROW_PIXELS;  // the heading covers one
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    if (top > this.scroll.scrollTop + room) this.scroll.scrollTop = top - room;
    this.draw();
    const row = this.body.querySelector(`[data-at="${this.active}"] button`);
    if (row) row.focus();
  }

  draw() {
    const first = Math.max(Math.floor(this.scroll.scrollTop / ROW_PIXELS) - 2, 0);
    const room = Math.ceil((this.scroll.clientHeight || 352) / ROW_PIXELS) + 4;
    const end = Math.min(first + room, this.shown.length);
    this.active = Math.max(Math.min(this.active, this.shown.length - 1), 0);
    const rows = [...this.body.querySelectorAll('tr:not(.spacer)')];
    while (rows.length < end - first) rows.push(this.makeRow());
    for (const extra of rows.splice(Math.max(end - first, 0))) extra.remove();
    rows.forEach((row, index) => this.fill(row, first + index));
    const spacer = (name, count) => {
      if (!this[name]) this[name] = make('tr', { className: 'spacer' }, make('td', { colSpan: COLUMNS.length }));
      this[name].setAttribute('aria-hidden', 'true');
      this[name].firstChild.style.height = `${count * ROW_PIXELS}px`;
      return this[name];
    };
    const wanted = [spacer('above', first), ...rows, spacer('below', this.shown.length - end)];
    wanted.forEach((row, index) => {
      if (this.body.children[index] !== row) this.body.insertBefore(row, this.body.children[index] || null);
    });
  }

  makeRow() {
    const row = make('tr');
    COLUMNS.forEach((column, index) => {
      const cell = make('td', { className: column.number ? 'num' : '' });
      if (index === 0) {
        const button = make('button', { type: 'button' });
        button.addEventListener('click', () => this.onChoose(row.dataset.name));
        cell.append(button);
      }
      if (column.strip) {
        const canvas = make('canvas');
        canvas.style.imageRendering = 'pixelated';
        canvas.setAttribute('aria-hidden', 'true');
        cell.append(canvas);
      }
      row.append(cell);
    });
    return row;
  }

  fill(row, at) {
    const member = this.shown[at];
    row.dataset.at = String(at);
    row.dataset.name = member.name;
    row.setAttribute('aria-rowindex', String(at + 2));
    row.classList.toggle('selected', member.name === this.chosen);
    row.title = member.row[ROW.node] ? `on ${member.row[ROW.node]}` : '';
    COLUMNS.forEach((column, index) => {
      const cell = row.children[index];
      if (column.strip) return paint(cell.firstChild, [this.strips.get(member.name) || []], STRIP_COLUMNS);
      const odd = Boolean(column.odd && column.odd(member));
      cell.classList.toggle('odd', odd);
      setText(index === 0 ? cell.firstChild : cell, column.text(member) + (odd ? ' !' : ''));
      if (index !== 0) return;
      const chosen = member.name === this.chosen;
      cell.firstChild.tabIndex = at === this.active ? 0 : -1;
      if (chosen) cell.firstChild.setAttribute('aria-current', 'true');
      else cell.firstChild.removeAttribute('aria-current');
    });
  }
}
MemberTable.collator = new Intl.Collator('en', { numeric: true });
