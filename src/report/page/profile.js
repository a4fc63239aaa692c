// Call sites from `w.profile`, which docs/reference/json/report.schema.json describes.

const NO_FRAME = {function: '(other call sites)', file: '', line: 0, module: '', library: false};

// Returns the frames of each site, the innermost frame first. The last site is the sum of all sites
// that are not listed.
function sitesOf(profile) {
  if (!profile.list) {
    const path = (stack) => {
      const frames = [];
      for (; stack >= 0; stack = profile.stack_prefixes[stack]) {
        frames.push(profile.frames[profile.stack_frames[stack]]);
      }
      return frames;
    };
    profile.list = profile.stacks.map((stack, index) => ({index, number: profile.sites[index], frames: path(stack)}));
    profile.list.push({index: profile.stacks.length, number: null, frames: [NO_FRAME]});
  }
  return profile.list;
}

// Returns the running sums of the changes in a flow. The zeros at the end of a flow are omitted.
function flowOf(profile, key) {
  profile.sums = profile.sums || {};
  profile.sums[key] = profile.sums[key] || profile.flow[key].map((changes) => {
    let now = 0;
    return profile.flow.events.map((_, i) => (now += changes[i] || 0));
  });
  return profile.sums[key];
}

function nearestIndex(values, v) {
  let best = 0;
  values.forEach((x, i) => {
    best = Math.abs(x - v) < Math.abs(values[best] - v) ? i : best;
  });
  return best;
}

// Returns the indices of the events of the flow that are nearest to the selection.
function selectedCuts(w) {
  const events = w.profile.flow.events;
  const last = events.length - 1;
  if (!isSelected()) {
    return [0, last];
  }
  const from = Math.min(nearestIndex(events, eventAt(w.stat, selection.from)), last - 1);
  return [Math.max(from, 0), Math.max(nearestIndex(events, eventAt(w.stat, selection.to)), from + 1)];
}

function cutsText(w) {
  const [from, to] = selectedCuts(w).map((cut) => axisAt(w.stat, w.profile.flow.events[cut], selection.axis));
  return `${xText(from)} to ${xText(to)}`;
}

// Weights of call sites. If a span is selected, they are weights in that span. `of` returns the
// function that maps a site to its value.
const WEIGHTS = {
  peak: {text: 'At the peak', unit: 'bytes', of: (p) => (i) => p.live_at_peak_bytes[i]},
  end: {text: 'At the end', unit: 'bytes', of: (p, [, to]) => (i) => flowOf(p, 'live_bytes')[i][to]},
  allocated: {text: 'Allocated', unit: 'bytes', of: (p, [from, to]) => (i) => flowOf(p, 'allocated_bytes')[i][to] -
    (isSelected() ? flowOf(p, 'allocated_bytes')[i][from] : 0)},
  allocs: {text: 'Calls', unit: 'count', of: (p, [from, to]) => (i) => flowOf(p, 'allocs')[i][to] -
    (isSelected() ? flowOf(p, 'allocs')[i][from] : 0)},
  temporary: {text: 'Short-lived blocks', unit: 'count', of: (p) => (i) => p.short_lived_blocks[i]},
  growth: {text: 'Growth', unit: 'bytes', of: (p, [from, to]) => (i) => flowOf(p, 'live_bytes')[i][to] - flowOf(p, 'live_bytes')[i][from]},
};

function weigh(w, weight) {
  const of = WEIGHTS[weight].of(w.profile, selectedCuts(w));
  return sitesOf(w.profile).map((s) => of(s.index));
}

function placeText(f) {
  return f.file ? `${baseName(f.file)}:${f.line}` : f.module ? baseName(f.module) : '';
}

function threadName(s, number) {
  const t = s.by_thread.find((x) => x.thread === number);
  return t && t.name ? `${number} ${t.name}` : `thread ${number}`;
}
