// Drawings. Each says in words what it shows, and is walked through with the arrow keys.

const SVG = 'http://www.w3.org/2000/svg';
const NUL = '\u00a0';

function makeSvg(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// From `most` downwards, a round number that divides it into three to five parts.
function roundStep(most) {
  const size = 10 ** Math.floor(Math.log10(most / 4));
  return [1, 2, 2.5, 5, 10].map((n) => n * size).find((step) => most / step <= 4.5);
}

// A line over x, and a second one on the same scale where points have it: [[x, y, y2?]...].
class LineChart {
  constructor(parent, options) {
    this.options = options;  // name, x(value), y(value), empty, second
    this.points = [];
    this.at = null;
    this.svg = makeSvg('svg', { viewBox: '0 0 1000 100', preserveAspectRatio: 'none', role: 'img',
      tabindex: 0 });
    this.frame = make('div', { className: 'chart' }, this.svg);
    this.readout = make('div', { className: 'readout' });
    parent.append(this.readout, this.frame);
    this.svg.addEventListener('pointermove', (event) => {
      const box = this.svg.getBoundingClientRect();
      this.mark(Math.round((event.clientX - box.left) / box.width * 1000));
    });
    this.svg.addEventListener('pointerleave', () => { this.at = null; this.draw(); });
    this.svg.addEventListener('blur', () => {
      this.readout.removeAttribute('aria-live');
      this.at = null;
      this.draw();
    });
    this.svg.addEventListener('keydown', (event) => this.walk(event));
    this.draw();
  }

  walk(event) {
    const last = this.points.length - 1;
    const now = this.at === null ? last : this.at;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.readout.setAttribute('aria-live', 'polite');
    this.at = Math.min(Math.max(to, 0), last);
    this.draw();
  }

  mark(place) {
    if (this.points.length === 0) return;
    let best = 0;
    this.points.forEach((point, index) => {
      const distance = (i) => Math.abs(this.placeX(this.points[i][0]) - place);
      if (distance(index) < distance(best)) best = index;
    });
    this.at = best;
    this.draw();
  }

  placeX(x) {
    const first = this.points[0][0];
    const last = this.points[this.points.length - 1][0];
    return last > first ? (x - first) / (last - first) * 1000 : 500;
  }

  update(points) {
    if (JSON.stringify(points) === JSON.stringify(this.points)) return;
    this.points = points;
    if (this.at !== null) this.at = Math.min(this.at, points.length - 1);
    this.draw();
  }

  draw() {
    const { name, x, y, empty, second, most: given } = this.options;
    const points = this.points;
    this.svg.replaceChildren();
    for (const label of this.frame.querySelectorAll('span')) label.remove();
    this.frame.hidden = points.length === 0;
    if (points.length === 0) return setText(this.readout, empty);
    const all = points.flatMap((point) => point.slice(1)).filter((v) => Number.isFinite(v));
    const most = given || (Math.max(...all, 1e-9) * 1.08);
    const placeY = (value) => 100 - Math.max(0, Math.min(value, most)) / most * 100;
    const step = roundStep(most);
    for (let value = 0; value <= most + 1e-12; value += step) {
      this.svg.append(makeSvg('path', { class: 'grid', d: `M0 ${placeY(value)}H1000` }));
      const label = make('span', { className: 'y' }, y(value));
      label.style.bottom = `${100 - placeY(value)}%`;
      this.frame.append(label);
    }
    const line = (column) => points.map((point, index) => {
      const value = point[column];
      if (!Number.isFinite(value)) return '';
      return `${index === 0 ? 'M' : 'L'}${this.placeX(point[0]).toFixed(1)} ${placeY(value).toFixed(2)}`;
    }).join('').replace(/^L/, 'M');
    // A single point has no line.
    const d = points.length === 1 ? `M480 ${placeY(points[0][1])}H520` : line(1);
    this.svg.append(makeSvg('path', { class: 'line', d }));
    if (second) this.svg.append(makeSvg('path', { class: 'line second', d: line(2) }));
    for (const [index, place] of [[0, 0], [points.length - 1, 100]]) {
      if (index === 0 && points.length === 1) continue;
      const label = make('span', { className: 'x' }, x(points[index][0]));
      label.style.left = `${place}%`;
      this.frame.append(label);
    }
    const shown = points[this.at === null ? points.length - 1 : this.at];
    if (this.at !== null) {
      this.svg.append(makeSvg('path', { class: 'mark', d: `M${this.placeX(shown[0])} 0V100` }));
    }
    const values = second ? `${y(shown[1])} (${second} ${y(shown[2])})` : y(shown[1]);
    setText(this.readout, `${this.at === null ? 'now' : x(shown[0])}: ${values}`);
    this.svg.setAttribute('aria-label', `${name} over ${points.length} points, from ` +
      `${y(points[0][1])} to ${y(points[points.length - 1][1])}; least ` +
      `${y(Math.min(...all))}, most ${y(Math.max(...all))}. Arrow keys read single points.`);
  }
}

// Parts of a whole: a bar, and a list with the same order and the figures. parts: [[name, value]].
class SplitBar {
  constructor(parent, empty) {
    this.empty = empty;
    this.bar = make('div', { className: 'split' });
    this.bar.setAttribute('aria-hidden', 'true');
    this.list = make('ul', { className: 'legend' });
    this.none = make('p', { className: 'empty' });
    parent.append(this.none, this.bar, this.list);
  }

  update(parts) {
    const whole = parts.reduce((sum, part) => sum + part[1], 0);
    this.bar.hidden = this.list.hidden = whole <= 0;
    this.none.hidden = whole > 0;
    setText(this.none, this.empty);
    if (whole <= 0 || JSON.stringify(parts) === this.drawn) return;
    this.drawn = JSON.stringify(parts);
    this.bar.replaceChildren();
    this.list.replaceChildren();
    parts.forEach(([name, seconds], index) => {
      const share = seconds / whole;
      if (share < 0.0005) return;
      const piece = make('i', { className: `k${index}` });
      piece.style.flex = `${share} 1 0`;
      if (share > 0.16) piece.append(make('b', {}, name));
      this.bar.append(piece);
      this.list.append(make('li', {}, make('i', { className: `k${index}` }), make('span', {}, name),
        make('span', {}, `${show.percent(share * 100)}${NUL}${NUL}${show.seconds(seconds)}`)));
    });
  }
}

// Viridis, by its anchors: dark is idle, light is busy, in every kind of colour sight.
const VIRIDIS = [[68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37]];
const PALETTE = Array.from({ length: 64 }, (_, level) => {
  const place = level / 63 * (VIRIDIS.length - 1);
  const low = Math.min(Math.floor(place), VIRIDIS.length - 2);
  return VIRIDIS[low].map((from, i) => Math.round(from + (VIRIDIS[low + 1][i] - from) * (place - low)));
});

// Levels [row][column] of 0..63 as pixels of a canvas, -1 left empty.
function paint(canvas, rows, columns) {
  const width = Math.max(columns, 1);
  if (canvas.width !== width || canvas.height !== rows.length) {
    canvas.width = width;
    canvas.height = Math.max(rows.length, 1);
  }
  const context = canvas.getContext('2d');
  const image = context.createImageData(canvas.width, canvas.height);
  rows.forEach((levels, row) => levels.forEach((level, column) => {
    if (level < 0) return;
    const at = (row * width + column) * 4;
    const colour = PALETTE[Math.round(level)];
    image.data.set([colour[0], colour[1], colour[2], 255], at);
  }));
  context.putImageData(image, 0, 0);
}

// A heat map whose cells can be walked through. update({rows: [{name, levels}], columns: [text]}).
class HeatMap {
  constructor(parent, options) {
    this.options = options;  // name, empty, tall (pixels of a row at most), onChoose(row)
    this.data = { rows: [], columns: [] };
    this.at = null;
    this.readout = make('div', { className: 'readout' });
    this.canvas = make('canvas', { tabIndex: 0, role: 'img' });
    this.canvas.style.imageRendering = 'pixelated';
    this.names = make('div', { className: 'names' });
    this.names.setAttribute('aria-hidden', 'true');
    this.frame = make('div', { className: 'map' }, this.names, this.canvas);
    this.ends = make('div', { className: 'ends' }, make('span'), make('span'));
    const bar = make('canvas');
    bar.setAttribute('aria-hidden', 'true');
    paint(bar, [PALETTE.map((_, level) => level)], 64);
    this.scale = make('div', { className: 'scale' }, 'idle', bar, 'busy all the time');
    parent.append(this.readout, this.frame, this.ends, this.scale);
    this.canvas.addEventListener('pointermove', (event) => this.point(event));
    this.canvas.addEventListener('pointerleave', () => { this.at = null; this.tell(); });
    this.canvas.addEventListener('click', (event) => { this.point(event); this.choose(); });
    this.canvas.addEventListener('keydown', (event) => this.walk(event));
    this.canvas.addEventListener('blur', () => {
      this.readout.removeAttribute('aria-live');
      this.at = null;
      this.tell();
    });
  }

  point(event) {
    const box = this.canvas.getBoundingClientRect();
    const part = (value, size, count) => Math.min(Math.max(Math.floor(value / size * count), 0), count - 1);
    this.at = [part(event.clientY - box.top, box.height, this.data.rows.length),
      part(event.clientX - box.left, box.width, this.data.columns.length)];
    this.tell();
  }

  walk(event) {
    const [row, column] = this.at || [0, this.data.columns.length - 1];
    const to = { ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1], Home: [row, 0], End: [row, this.data.columns.length - 1] }[event.key];
    if (event.key === 'Enter') this.choose();
    if (!to || this.data.rows.length === 0) return;
    event.preventDefault();
    this.readout.setAttribute('aria-live', 'polite');
    const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    this.at = [within(to[0], this.data.rows.length), within(to[1], this.data.columns.length)];
    this.tell();
  }

  choose() {
    if (this.at && this.options.onChoose) this.options.onChoose(this.data.rows[this.at[0]]);
  }

  update(data) {
    this.data = data;
    const there = data.rows.length > 0 && data.columns.length > 0;
    this.frame.hidden = this.ends.hidden = this.scale.hidden = !there;
    if (there) {
      paint(this.canvas, data.rows.map((row) => row.levels), data.columns.length);
      const tall = Math.max(Math.min(this.options.tall, Math.floor(320 / data.rows.length)), 2);
      this.canvas.style.height = `${tall * data.rows.length}px`;
      this.nameRows(tall);
      setText(this.ends.firstChild, data.columns[0]);
      setText(this.ends.lastChild, data.columns[data.columns.length - 1]);
      if (this.at) this.at = [Math.min(this.at[0], data.rows.length - 1),
        Math.min(this.at[1], data.columns.length - 1)];
    }
    this.tell();
  }

  // As many names as have room.
  nameRows(tall) {
    const { rows } = this.data;
    const every = Math.ceil(13 / tall);
    const shown = rows.map((row) => row.name.split(' ')[0]).filter((_, at) => at % every === 0);
    const drawn = `${tall} ${rows.length} ${shown.join(' ')}`;
    if (this.named === drawn) return;
    this.named = drawn;
    this.names.style.gridTemplateRows = `repeat(${rows.length}, ${tall}px)`;
    this.names.replaceChildren(...shown.map((name, index) => {
      const label = make('span', {}, this.options.number ? String(index * every) : name);
      label.style.gridRow = String(index * every + 1);
      return label;
    }));
  }

  // In words: the cell at the mark, else the busiest and the idlest row.
  tell() {
    const { rows, columns } = this.data;
    if (rows.length === 0 || columns.length === 0) return setText(this.readout, this.options.empty);
    const share = (level) => (level < 0 ? 'not known' : show.percent(level / 63 * 100) + ' busy');
    if (this.at && rows[this.at[0]]) {
      const row = rows[this.at[0]];
      return setText(this.readout, `${row.name} at ${columns[this.at[1]]}: ` +
        share(row.levels[this.at[1]] ?? -1));
    }
    const means = rows.map((row) => {
      const known = row.levels.filter((level) => level >= 0);
      return { name: row.name, mean: known.length ? known.reduce((a, b) => a + b) / known.length : -1 };
    }).filter((row) => row.mean >= 0).sort((a, b) => b.mean - a.mean);
    if (means.length === 0) return setText(this.readout, this.options.empty);
    const busiest = means[0];
    const idlest = means[means.length - 1];
    const text = means.length === 1 ? `${busiest.name}: ${share(busiest.mean)} on average`
      : `Busiest ${busiest.name} (${share(busiest.mean)} on average), least busy ${idlest.name} ` +
        `(${share(idlest.mean)}), of ${rows.length}`;
    setText(this.readout, text);
    this.canvas.setAttribute('aria-label', `${this.options.name}. ${text}. Arrow keys read single cells.`);
  }
}
