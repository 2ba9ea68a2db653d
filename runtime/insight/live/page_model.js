// What the page knows of the job, and how it hears of it. The server sends the whole value first and
// then, once a second, a JSON merge patch (RFC 7386); snapshot_json.h has the value's places.

// The places of a member's row.
const ROW = { slot: 0, role: 1, rank: 2, node: 3, state: 4, restarts: 5, rate: 6, busy: 7, cores: 8,
  gpu: 9, memory: 10, wait: 11, queued: 12, network: 13 };

function mergePatch(target, patch) {
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return patch;
  const result = target !== null && typeof target === 'object' && !Array.isArray(target)
    ? target : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

// Figures as people read them; a dash where nothing is known.
const show = {
  number(value, digits = 3) {
    if (value === null || value === undefined || !Number.isFinite(value)) return '–';
    const size = Math.abs(value);
    if (size >= 1e5 || (size > 0 && size < 1e-6)) {
      return new Intl.NumberFormat('en', { notation: size >= 1e5 ? 'compact' : 'scientific',
        maximumSignificantDigits: digits }).format(value);
    }
    return new Intl.NumberFormat('en', { maximumSignificantDigits: size >= 1000 ? 4 : digits })
      .format(value);
  },
  percent(value) {
    return value === null || value === undefined ? '–' : `${show.number(value, value < 10 ? 2 : 3)} %`;
  },
  count: (value) => new Intl.NumberFormat('en').format(value || 0),
  seconds(value) {
    if (value === null || value === undefined) return '–';
    if (value < 1e-3) return `${show.number(value * 1e6)} µs`;
    if (value < 1) return `${show.number(value * 1e3)} ms`;
    return value < 100 ? `${show.number(value)} s` : show.clock(value);
  },
  // 4:07 or 1:04:07
  clock(seconds) {
    const whole = Math.max(0, Math.round(seconds));
    const two = (n) => String(n).padStart(2, '0');
    const hours = Math.floor(whole / 3600);
    const minutes = Math.floor(whole / 60) % 60;
    return hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
  },
  dollars(value) {
    if (value === null || value === undefined) return '–';
    return value >= 1 ? `$${value.toFixed(2)}` : `$${show.number(value, 2)}`;
  },
  mebibytes(value) {
    if (value === null || value === undefined) return '–';
    return value < 1024 ? `${show.number(value)} MiB` : `${show.number(value / 1024)} GiB`;
  },
  rate(bytes) {
    if (bytes === null || bytes === undefined) return '–';
    return bytes < 1e6 ? `${show.number(bytes / 1e3)} kB/s` : `${show.number(bytes / 1e6)} MB/s`;
  },
};

// 0..63 of a character of a heat column; -1: not known.
const heatLevel = (character) => {
  const level = character === undefined ? -1 : character.charCodeAt(0) - 48;
  return level < 0 ? -1 : Math.min(level, 63);
};

// Hears the job until it is over. `onValue(value)` after each event, `onLink(text, lost)` when the
// way there changes.
class Connection {
  constructor(address, onValue, onLink) {
    Object.assign(this, { address, onValue, onLink, value: null, heard: Date.now() });
    this.open();
    // A line that breaks without a word brings no error.
    setInterval(() => this.look(), 1000);
  }

  open() {
    if (this.source) this.source.close();
    this.heard = Date.now();
    this.source = new EventSource(this.address);
    this.source.addEventListener('whole', (event) => this.take(JSON.parse(event.data)));
    this.source.addEventListener('change', (event) => {
      this.take(mergePatch(this.value, JSON.parse(event.data)));
    });
    this.source.onerror = () => {
      if (this.value && this.value.over) return;
      this.onLink(this.value ? 'Connection lost, trying again' : 'No answer yet, trying again', true);
      if (this.source.readyState === EventSource.CLOSED) this.askWhy();
    };
  }

  take(value) {
    this.value = value;
    this.heard = Date.now();
    this.onLink(value.over ? 'The job has ended; this is its last state' : 'Live', false);
    if (value.over) this.source.close();
    this.onValue(value);
  }

  look() {
    if (this.value && this.value.over) return;
    const silent = Math.round((Date.now() - this.heard) / 1000);
    if (silent >= 4 && this.value) this.onLink(`Nothing heard for ${silent} s, trying again`, true);
    if (silent >= 10) {
      this.open();
      this.heard = Date.now();
    }
  }

  // The source says only that it was refused.
  async askWhy() {
    try {
      const answer = await fetch(this.address, { signal: AbortSignal.timeout(3000) });
      if (!answer.ok) this.onLink((await answer.text()).trim().slice(0, 200), true);
      else if (answer.body) answer.body.cancel();
    } catch (error) {
      this.onLink('It does not answer, trying again', true);
    }
    setTimeout(() => { if (!(this.value && this.value.over)) this.open(); }, 3000);
  }
}
