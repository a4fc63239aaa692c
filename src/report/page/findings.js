// What the figures say in plain words. Each rule has its threshold here and in docs/reference/report.md, section "Findings"; a rule whose
// figures are missing says nothing.

const LIMITS = {
  sameTime: 0.02, // a difference in time below this is not worth a change
  moreMemory: 1.1, // of the first allocator's peak RSS: more is not recommended
  fragmentation: 1.25, // peak RSS over peak live bytes
  below: 0.95, // peak RSS over peak live bytes
  kept: 0.5, // of the peak RSS, when all is freed
  heapTime: 0.05, // of the recorded time in calls
  atOnce: 0.25, // of blocks freed within 8 events
  left: 0.5, // of the peak, never freed
  moved: 0.5, // of growing reallocs
  copied: 0.01, // of requested bytes
  top: 0.5, // of requests have one of 5 sizes
  slack: 0.1, // of requested bytes lost to rounding
  foreign: 0.05, // of frees by another thread
  large: 0.5, // of requested bytes in requests over 128 KiB
  largeCount: 1000,
  small: 0.3, // of requests up to 16 bytes
  group: 0.5, // of the peak in one class of sizes
  zeroed: 0.25, // of requested bytes
  site: 0.2, // of the peak taken in one place
  inexact: 0.001, // of events whose order was guessed
};

function allocatorName(item) {
  const a = item.result.allocator || {};
  return [a.name || '?', ...(a.tunables || [])].join(',');
}

function byTime(results) {
  return [...results].filter((r) => isNumber(r.result.wall_ns)).sort((a, b) => a.result.wall_ns - b.result.wall_ns);
}

function interval(ci) {
  return Array.isArray(ci) && ci.every(isNumber) ? ` (95 % interval ${ci[0].toFixed(2)} to ${ci[1].toFixed(2)})` : '';
}

function tellsDifference(r) {
  const ci = r.wall_ratio_ci95;
  return Array.isArray(ci) ? ci[0] > 1 || ci[1] < 1 : false;
}

// Which allocator: the fastest one whose memory is in bounds, if the interval says that it is faster at all.
function findAllocator(results) {
  const sorted = byTime(results);
  if (sorted.length < 2) {
    return [];
  }
  const base = results[0];
  const baseName = allocatorName(base);
  const limit = LIMITS.moreMemory * base.result.peak_rss_bytes;
  const faster = sorted.filter((r) => r !== base && r.result.wall_ratio < 1 - LIMITS.sameTime && tellsDifference(r.result));
  const lean = faster.find((r) => r.result.peak_rss_bytes <= limit);
  const found = [];
  if (lean) {
    found.push({act: true, text: `${allocatorName(lean)} does the same calls in ${ratioText(lean.result.wall_ratio)} the time of ` +
      `${baseName}${interval(lean.result.wall_ratio_ci95)} with ${ratioText(lean.result.rss_ratio)} its peak memory.`,
    advice: `Try the program itself with ${allocatorName(lean)} preloaded.`});
  }
  if (faster.length && faster[0] !== lean) {
    found.push({text: `${allocatorName(faster[0])} is the fastest, ${ratioText(faster[0].result.wall_ratio)} the time of ${baseName}, ` +
      `but takes ${ratioText(faster[0].result.rss_ratio)} the memory at the peak.`});
  }
  if (!faster.length) {
    found.push({text: `No allocator tried is measurably faster than ${baseName} on this workload.`});
  }
  return found;
}

function findLeanest(results) {
  const known = results.filter((r) => r.result.peak_rss_bytes > 0);
  if (known.length < 2) {
    return [];
  }
  const least = known.reduce((a, b) => (b.result.peak_rss_bytes < a.result.peak_rss_bytes ? b : a));
  const most = known.reduce((a, b) => (b.result.peak_rss_bytes > a.result.peak_rss_bytes ? b : a));
  return [{text: `${allocatorName(least)} needs the least memory, ${bytesText(least.result.peak_rss_bytes)} at the peak; ` +
    `${allocatorName(most)} the most, ${bytesText(most.result.peak_rss_bytes)}.`}];
}

function eachOf(results, text) {
  return results.map((r) => `${allocatorName(r)} ${text(r.result)}`).join(', ');
}

function findFragmentation(results) {
  const high = results.filter((r) => r.result.peak_fragmentation >= LIMITS.fragmentation);
  return !high.length ? [] : [{text: `Peak RSS over peak live bytes: ${eachOf(high, (r) => ratioText(r.peak_fragmentation))}. What is above 1 is ` +
    'headers, rounding, caches and holes.'}];
}

// What the recorded program held, where it is known: it says whether the replay's guess at what was written is right.
function recordedHeap(low) {
  const item = low.find((r) => r.result.faithfulness && r.result.faithfulness.rss);
  return item ? {item, rss: item.result.faithfulness.rss} : null;
}

// Pages that are never written take no memory. That is no error, unless the recorded program held more than that.
function findBelow(results) {
  const low = results.filter((r) => r.result.peak_fragmentation < LIMITS.below);
  if (!low.length) {
    return [];
  }
  const all = results.filter((r) => !low.includes(r) && isNumber(r.result.peak_fragmentation));
  const known = recordedHeap(low);
  const live = known && known.item.result.peak_rss_bytes / known.item.result.peak_fragmentation;
  const against = known && known.rss.recorded_peak_bytes >= LIMITS.below * live;
  const found = [{text: 'Live bytes are what was asked for, and pages that the program never writes to are never resident: at the peak ' +
    `${eachOf(low, (r) => `holds ${bytesText(r.peak_rss_bytes)}, ${ratioText(r.peak_fragmentation)} the live bytes`)}.` +
    (all.length ? ` Where calloc writes to its pages to clear them, the program pays for all of them: ${eachOf(all, (r) =>
      `${bytesText(r.peak_rss_bytes)}, ${ratioText(r.peak_fragmentation)}`)}.` : '') +
    (known && !against ? ` The recorded program agrees: its heap held ${bytesText(known.rss.recorded_peak_bytes)} at most.` : '')}];
  if (against) {
    found.push({act: true, text: `The recorded program held ${bytesText(known.rss.recorded_peak_bytes)} at its peak, its replay with ` +
      `${allocatorName(known.item)} only ${bytesText(known.rss.replayed_peak_bytes)}.`,
    advice: known.rss.recorded_mappings_bytes ? 'It wrote to more of its zeroed blocks than the replay does: replay with --touch all before memory decides.'
      : 'What it mapped itself is in that: record with --maps to take it off. If it maps nothing, replay with --touch all before memory decides.'});
  }
  return found;
}

function findKept(results) {
  const kept = results.filter((r) => r.result.freed_rss_bytes >= LIMITS.kept * r.result.peak_rss_bytes);
  return !kept.length ? [] : [{text: `Share of the peak that is still held when all blocks are freed: ${eachOf(kept, (r) =>
    percentText(share(r.freed_rss_bytes, r.peak_rss_bytes)))}.`}];
}

// How much time is in the heap at all: the CPU time of the first allocator's calls, over how long the program ran. CPU time, because what
// else ran beside the replay is not in it.
function findWeight(s, results) {
  const base = results[0] && results[0].result;
  if (!base || !s.duration_ns || !isNumber(base.cpu_ns) || Math.abs(base.events - s.events) > 0.05 * s.events) {
    return [];
  }
  const ns = Math.max(base.cpu_ns - (base.harness_ns_per_event || 0) * base.events, 0);
  const part = ns / s.duration_ns;
  const name = allocatorName(results[0]);
  return [{act: part >= LIMITS.heapTime, text: `The calls take ${nsText(ns)} of CPU time with ${name} when replayed, ${percentText(part)} of ` +
    `the ${nsText(s.duration_ns)} that the recorded run lasted.`,
  advice: part >= LIMITS.heapTime ? 'Fewer calls or a faster allocator can be felt.'
    : 'Time is hardly to be gained here: look at memory.'}];
}

function givenBlocks(s) {
  return sum(s.lifetimes.by_events.map((l) => l.count));
}

function findAtOnce(s) {
  const row = s.freed_at_once.find((r) => r.within_events === 8);
  const part = share(row.count, givenBlocks(s));
  return part < LIMITS.atOnce ? [] : [{act: true, text: `${percentText(part)} of the blocks that are freed live for at most 8 calls.`,
    advice: 'Buffers on the stack, or kept from one use to the next, would save these calls.'}];
}

function findLeft(s) {
  const part = share(s.never_freed.bytes, s.peak.bytes);
  return part < LIMITS.left || s.processes.length > 1 ? [] : [{text: `${bytesText(s.never_freed.bytes)} in ` +
    `${countText(s.never_freed.count)} blocks are never freed, ${percentText(part)} of the peak.`,
  advice: 'For a program that ends this costs nothing and saves the calls; in a server it is what grows.'}];
}

function findRealloc(s) {
  const r = s.realloc;
  const grown = r.grown_moved.count + r.grown_in_place.count;
  const part = share(r.grown_moved.count, grown);
  const small = share(sum(r.growth_factors.slice(0, 2).map((g) => g.count)), grown);
  if (part < LIMITS.moved || r.grown_moved.bytes < LIMITS.copied * s.requested_bytes) {
    return [];
  }
  return [{act: true, text: `${percentText(part)} of the growing reallocs moved the block, which copied ${bytesText(r.grown_moved.bytes)}; ` +
    `${percentText(small)} of them grew it by a quarter or less.`,
  advice: 'Grow by half or double, or ask for the final size at once.'}];
}

function findTop(s) {
  const top = s.top_sizes.by_count.slice(0, 5);
  const part = share(sum(top.map((t) => t.count)), s.requests.sized);
  return part < LIMITS.top || top.length < 5 ? [] : [{text: `Five sizes (${top.map((t) => bytesText(t.size_bytes)).join(', ')}) make ` +
    `${percentText(part)} of the requests.`, advice: 'Pools of these would take the load off malloc.'}];
}

function findSlack(s) {
  const found = [];
  for (const [key, name] of [['glibc', 'glibc’s chunks'], ['four_per_doubling', 'four size classes for each power of two']]) {
    const part = share(s.size_classes[key].slack_bytes, s.requests.bytes);
    if (part >= LIMITS.slack) {
      found.push({text: `Rounding sizes up to ${name} adds ${percentText(part)} to what is asked for.`,
        advice: 'Look at the top sizes: some just miss a class.'});
    }
  }
  return found;
}

function findForeign(s) {
  const frees = givenBlocks(s);
  const part = share(s.cross_thread_frees, frees);
  return part < LIMITS.foreign ? [] : [{act: true, text: `${percentText(part)} of the blocks are freed or resized by another thread than ` +
    'the one that took them.', advice: 'Allocators differ most in this: compare them, and look at the thread matrix.'}];
}

function findLarge(s) {
  const large = s.sizes.filter((c) => c.max_bytes === null || c.max_bytes > 131072);
  const count = sum(large.map((c) => c.count));
  const part = share(sum(large.map((c) => c.bytes)), s.requests.bytes);
  return part < LIMITS.large || count < LIMITS.largeCount ? [] : [{act: true, text: `${countText(count)} requests over 128 KiB make ` +
    `${percentText(part)} of the bytes.`, advice: 'Each may be an mmap and its page faults: raise the threshold, or keep the buffers.'}];
}

function findSmall(s) {
  const part = share(sum(s.sizes.filter((c) => c.max_bytes !== null && c.max_bytes <= 16).map((c) => c.count)), s.requests.sized);
  return part < LIMITS.small ? [] : [{text: `${percentText(part)} of the requests are for 16 bytes or less, where headers weigh most.`,
    advice: 'Put them into the structures that point to them, or into arrays.'}];
}

function findPeak(s) {
  const most = s.sizes.reduce((a, b) => (b.peak_bytes > a.peak_bytes ? b : a), {peak_bytes: 0});
  const part = share(most.peak_bytes, s.peak.bytes);
  const through = share(s.peak.event, s.timeline.by_event.end_event.slice(-1)[0]);
  const found = [{text: `Live bytes are highest, ${bytesText(s.peak.bytes)} in ${countText(s.peak.blocks)} blocks, after ` +
    `${percentText(through)} of the events` + (isNumber(s.peak.ns) ? `, ${nsText(s.peak.ns)} after the start` : '') + '.'}];
  if (part >= LIMITS.group) {
    found.push({act: true, text: `${percentText(part)} of the peak is in blocks of ` +
      `${classText(most.max_bytes, classBefore([most], 0))}, ${countText(most.peak_blocks)} of them.`,
    advice: 'That is where memory can be saved.'});
  }
  return found;
}

function findSite(s) {
  const site = s.call_sites && s.call_sites.at_peak[0];
  const part = site ? share(site.peak_bytes, s.call_sites.peak_live_bytes) : 0;
  return part < LIMITS.site || !site.frames.length ? [] : [{act: true, text: `${percentText(part)} of the peak, ` +
    `${bytesText(site.peak_bytes)}, is taken in one place: ${frameText(ownFrame(site.frames))}.`, advice: 'Its callers are in the table of call sites.'}];
}

function findZeroed(s) {
  const part = share(s.calloc.zeroed_bytes, s.requests.bytes);
  return part < LIMITS.zeroed ? [] : [{text: `calloc asks for ${percentText(part)} of all bytes.`,
    advice: 'If they are written at once anyway, malloc saves clearing them.'}];
}

function findTrust(s) {
  const found = [];
  if (s.lost) {
    found.push({act: true, text: `${countText(s.lost)} words were lost while recording: counts are too low.`});
  }
  if (s.order.ambiguous > LIMITS.inexact * s.events) {
    found.push({text: `The order of ${countText(s.order.ambiguous)} events had to be guessed.`});
  }
  if (s.cut_off) {
    found.push({act: true, text: 'The file is cut off: this is its beginning.'});
  }
  return found;
}

function findings(s, results) {
  const of = results.length ? [findAllocator, findLeanest, findFragmentation, findBelow, findKept].flatMap((f) => f(results)) : [];
  const uses = s ? [findPeak, findSite, findAtOnce, findRealloc, findForeign, findLarge, findTop, findSlack, findSmall, findLeft, findZeroed,
    findTrust].flatMap((f) => f(s)) : [];
  return [...of, ...(s && results.length ? findWeight(s, results) : []), ...uses];
}
