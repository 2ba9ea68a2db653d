// Puts the parts together: the jobs as the server tells them, the totals, and the table.

const byId = (id) => document.getElementById(id);
const link = byId('link');
const state = { value: null, version: 0, jobs: new Map(), ahead: 0, kind: -1, drawn: false };

const partsOf = (told) => [told.facts, told.figures, told.note, told.finding];
// Of the server's value for a job, which row_json.cpp writes: parts by name, and places in them.
function jobOf(key, told) {
  const [created, kind, word, queue, queueState, registered, attempt, restarts, head] = told.facts;
  const [step, total, rate, wait, eta, loss, dollars, waited] = told.figures;
  const slash = key.indexOf('/');
  const job = { key, space: key.slice(0, slash), name: key.slice(slash + 1), created, kind, state: word, queue,
    queueState, registered, attempt, restarts, head, step, total, rate, wait, eta, loss, dollars, waited,
    note: told.note || '', finding: null, findings: 0, version: ++state.version, told: partsOf(told),
    age: () => (created ? Math.max(Date.now() / 1000 + state.ahead - created, 0) : null) };
  if (told.finding) {
    const [rule, message, remedy, field, member, seconds, cost, active, findings] = told.finding;
    job.finding = { rule, message, remedy, field, member, seconds, dollars: cost, active };
    job.findings = findings;
  }
  job.text = [key, word, KINDS[kind], queue, queueState, job.note, job.finding ? job.finding.rule : '']
    .join(' ').toLowerCase();
  return job;
}

function takeJobs() {
  const told = state.value.jobs;
  for (const key of state.jobs.keys()) {
    if (!Object.hasOwn(told, key)) state.jobs.delete(key);
  }
  for (const [key, value] of Object.entries(told)) {
    const known = state.jobs.get(key);  // a patch puts new parts in the place of those that change
    const same = known && partsOf(value).every((part, index) => part === known.told[index]);
    if (!same) state.jobs.set(key, jobOf(key, value));
  }
}

const sum = (jobs, of) => jobs.reduce((all, job) => all + (of(job) || 0), 0);

// Of the jobs of the chosen namespace, whatever else is filtered.
function drawTotals(jobs) {
  setText(byId('count'), show.count(jobs.length));
  const training = jobs.filter((job) => job.rate !== null);
  setText(byId('count-note'), `${show.count(training.length)} train, ${show.number(sum(training, (j) => j.rate))} samples/s`);
  const priced = jobs.filter((job) => job.dollars !== null);
  const dollars = sum(priced, (job) => job.dollars);
  const waited = sum(priced, (job) => job.waited);
  setText(byId('dollars'), priced.length ? money(dollars) : '–');
  setText(byId('dollars-note'), !priced.length ? 'no job has prices' : priced.length === jobs.length ? 'all jobs have prices'
    : `${show.count(priced.length)} of ${show.count(jobs.length)} jobs have prices`);
  setText(byId('waited'), priced.length ? money(waited) : '–');
  setText(byId('waited-note'), dollars > 0 ? `${show.percent(waited / dollars * 100)} of the cost` : '');
  KINDS.forEach((kind, index) => {
    const count = jobs.filter((job) => job.kind === index).length;
    const button = kinds[index];
    setText(button, `${show.count(count)} ${kind}`);
    button.disabled = count === 0 && state.kind !== index;
    button.setAttribute('aria-pressed', String(state.kind === index));
  });
}

const kinds = KINDS.map((kind, index) => {
  const button = make('button', { type: 'button', title: KIND_TITLES[index] });
  button.addEventListener('click', () => {
    state.kind = state.kind === index ? -1 : index;
    draw();
  });
  byId('kinds').append(button);
  return button;
});

function drawNamespaces(jobs) {
  const select = byId('namespace');
  const names = [...new Set(jobs.map((job) => job.space))].sort(collator.compare);
  if (select.value && !names.includes(select.value)) names.push(select.value);
  const text = JSON.stringify(names);
  if (select.dataset.drawn === text) return;
  select.dataset.drawn = text;
  const chosen = select.value;
  select.replaceChildren(make('option', { value: '' }, 'all'), ...names.map((name) => make('option', { value: name }, name)));
  select.value = chosen;
}

function drawMessage() {
  const { ready, hidden } = state.value;
  const message = byId('message');
  const text = !ready ? 'The operator is still reading the cluster: jobs may be missing.'
    : hidden ? `${show.count(hidden)} further jobs are not shown, and not in the totals.` : '';
  message.hidden = !text;
  setText(message, text);
}

const table = new JobTable(byId('table'), (shown, all) => {
  setText(byId('shown'), shown.length === all.length ? `${show.count(all.length)} jobs`
    : `${show.count(shown.length)} of ${show.count(all.length)} jobs`);
});

function draw() {
  state.drawn = true;
  if (!state.value) return;
  const all = [...state.jobs.values()];
  drawMessage();
  drawNamespaces(all);
  const space = byId('namespace').value;
  const words = byId('filter').value.toLowerCase().split(/\s+/).filter(Boolean);
  drawTotals(space ? all.filter((job) => job.space === space) : all);
  table.update(all, (job) => (!space || job.space === space) && (state.kind < 0 || job.kind === state.kind) &&
    words.every((word) => job.text.includes(word)));
  const failed = all.filter((job) => job.kind <= 2).length;
  document.title = failed ? `All jobs: ${show.count(failed)} need attention` : 'All jobs';
}

byId('namespace').addEventListener('change', draw);
byId('filter').addEventListener('input', draw);
byId('filter').addEventListener('keydown', (event) => {
  if (event.key !== 'Escape' || !event.target.value) return;
  event.target.value = '';
  draw();
});
document.addEventListener('visibilitychange', () => { if (!document.hidden) draw(); });
// Ages go on while nothing is told.
setInterval(() => { if (!document.hidden) draw(); }, 10000);

new Connection('events', (value) => {
  if (value !== state.value) state.ahead = value.now - Date.now() / 1000;
  state.value = value;
  takeJobs();
  state.drawn = false;
  if (!document.hidden) requestAnimationFrame(() => { if (!state.drawn) draw(); });
}, (text, lost) => {
  link.classList.toggle('lost', lost);
  setText(link, text);
});
