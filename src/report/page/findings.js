// Findings: sentences computed from the figures. Each rule has its threshold here and in docs/reference/report.md, section "Findings"; a
// rule whose figures are missing gives no finding.

const LIMITS = {
  sameTime: 0.02, // a difference in time below this is not worth a change
  moreMemory: 1.1, // of the first allocator's peak RSS: more is not recommended
  fragmentation: 1.25, // peak RSS over peak live bytes
  below: 0.95, // peak RSS over peak live bytes
  kept: 0.5, // of the peak RSS, after all blocks are freed
  heapTime: 0.05, // of the program's CPU time in calls
  shortLived: 0.25, // of blocks freed within 8 events
  neverFreed: 0.5, // of the peak, never freed
  moved: 0.5, // of growing reallocs
  copied: 0.01, // of requested bytes
  top: 0.5, // of requests have one of 5 sizes
  rounding: 0.1, // of requested bytes, internal fragmentation
  remote: 0.05, // of frees are remote
  large: 0.5, // of requested bytes in requests over 128 KiB
  largeCount: 1000,
  small: 0.3, // of requests up to 16 bytes
  group: 0.5, // of the peak in one class of sizes
  zeroed: 0.25, // of requested bytes
  site: 0.2, // of the peak from one call site
  inexact: 0.001, // of events whose order is ambiguous
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

function isDifferent(r) {
  const ci = r.wall_ratio_ci95;
  return Array.isArray(ci) ? ci[0] > 1 || ci[1] < 1 : false;
}

// Which allocator: the fastest one whose memory is in bounds, if the interval says that it is faster at all.
function findAllocator(results) {
  const sorted = byTime(results);
  // Without an interval nothing can be said about a difference.
  if (sorted.length < 2 || !results.slice(1).every((r) => Array.isArray(r.result.wall_ratio_ci95))) {
    return [];
  }
  const base = results[0];
  const baseName = allocatorName(base);
  const limit = LIMITS.moreMemory * base.result.peak_rss_bytes;
  const faster = sorted.filter((r) => r !== base && r.result.wall_ratio < 1 - LIMITS.sameTime && isDifferent(r.result));
  const lean = faster.find((r) => r.result.peak_rss_bytes <= limit);
  const found = [];
  if (lean) {
    found.push({act: true, text: `${allocatorName(lean)} replays the workload in ${ratioText(lean.result.wall_ratio)} the time of ` +
      `${baseName}${interval(lean.result.wall_ratio_ci95)} with ${ratioText(lean.result.rss_ratio)} its peak RSS.`,
    advice: `Try the program itself with ${allocatorName(lean)} preloaded.`});
  }
  if (faster.length && faster[0] !== lean) {
    found.push({text: `${allocatorName(faster[0])} is the fastest, ${ratioText(faster[0].result.wall_ratio)} the time of ${baseName}, ` +
      `but has ${ratioText(faster[0].result.rss_ratio)} its peak RSS.`});
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
  return least.result.peak_rss_bytes === most.result.peak_rss_bytes ? [] : [{text: `${allocatorName(least)} has the lowest peak RSS, ${bytesText(least.result.peak_rss_bytes)}; ` +
    `${allocatorName(most)} has the highest, ${bytesText(most.result.peak_rss_bytes)}.`}];
}

function eachOf(results, text) {
  return results.map((r) => `${allocatorName(r)} ${text(r.result)}`).join(', ');
}

function findFragmentation(results) {
  const high = results.filter((r) => r.result.peak_fragmentation >= LIMITS.fragmentation);
  return !high.length ? [] : [{text: `Peak RSS divided by peak live bytes: ${eachOf(high, (r) => ratioText(r.peak_fragmentation))}. The part above 1 is ` +
    'headers, rounding, caches and holes.'}];
}

// The heap of the recorded program, where it is known: it shows whether the replay's assumption about written pages is right.
function recordedHeap(low) {
  const item = low.find((r) => r.result.fidelity && r.result.fidelity.rss);
  return item ? {item, rss: item.result.fidelity.rss} : null;
}

// Pages that are never written use no memory. That is no error, unless the recorded program used more.
function findBelow(results) {
  const low = results.filter((r) => r.result.peak_fragmentation < LIMITS.below);
  if (!low.length) {
    return [];
  }
  const all = results.filter((r) => !low.includes(r) && isNumber(r.result.peak_fragmentation));
  const known = recordedHeap(low);
  const live = known && known.item.result.peak_rss_bytes / known.item.result.peak_fragmentation;
  const against = known && known.rss.recorded_peak_bytes >= LIMITS.below * live;
  const found = [{text: 'RSS is below live bytes, because pages that the program never writes to are not resident: at the peak ' +
    `${eachOf(low, (r) => `has ${bytesText(r.peak_rss_bytes)}, ${ratioText(r.peak_fragmentation)} the live bytes`)}.` +
    (all.length ? ` An allocator whose calloc clears blocks by writing makes all their pages resident: ${eachOf(all, (r) =>
      `${bytesText(r.peak_rss_bytes)}, ${ratioText(r.peak_fragmentation)}`)}.` : '') +
    (known && !against ? ` The recorded program agrees: its heap had a peak of ${bytesText(known.rss.recorded_peak_bytes)}.` : '')}];
  if (against) {
    found.push({act: true, text: `The recorded program had a peak of ${bytesText(known.rss.recorded_peak_bytes)}, its replay with ` +
      `${allocatorName(known.item)} only ${bytesText(known.rss.replayed_peak_bytes)}.`,
    advice: known.rss.recorded_mappings_bytes ? 'It wrote to more of its zeroed blocks than the replay does: replay with --touch all before you compare memory.'
      : 'That includes its own mappings: record with --maps to subtract them. If it maps nothing, replay with --touch all before you compare memory.'});
  }
  return found;
}

function findKept(results) {
  const kept = results.filter((r) => r.result.rss_after_free_bytes >= LIMITS.kept * r.result.peak_rss_bytes);
  return !kept.length ? [] : [{text: `Share of the peak RSS that remains after all blocks are freed: ${eachOf(kept, (r) =>
    percentText(share(r.rss_after_free_bytes, r.peak_rss_bytes)))}.`}];
}

// The calls' share of the program's CPU time, where the recording knows that.
function findWeight(results) {
  const known = results.find((r) => r.result.fidelity && r.result.fidelity.program);
  if (!known) {
    return [];
  }
  const p = known.result.fidelity.program;
  const act = p.calls_share >= LIMITS.heapTime;
  return [{act, text: `The calls take at least ${percentText(p.calls_share)} of the program’s CPU time: ${nsText(p.recorded_calls_cpu_ns)}, as replayed, of ` +
    `${nsText(p.cpu_ns)}.`,
  advice: act ? 'Fewer calls or a faster allocator can make the program faster.'
    : 'A faster allocator can hardly make the program faster: compare memory instead.'}];
}

function freedBlocks(s) {
  return sum(s.lifetimes.by_events.map((l) => l.count));
}

function findShortLived(s) {
  const row = s.short_lived.find((r) => r.within_events === 8);
  const part = share(row.count, freedBlocks(s));
  return part < LIMITS.shortLived ? [] : [{act: true, text: `${percentText(part)} of the freed blocks live for at most 8 events.`,
    advice: 'Use buffers on the stack, or reuse them, to save these calls.'}];
}

function findNeverFreed(s) {
  const part = share(s.never_freed.bytes, s.peak.bytes);
  return part < LIMITS.neverFreed || s.processes.length > 1 || s.partial ? [] : [{text: `${bytesText(s.never_freed.bytes)} in ` +
    `${countText(s.never_freed.count)} blocks are never freed, ${percentText(part)} of the peak.`,
  advice: 'In a program that exits this is harmless and saves calls; in a server it is growth.'}];
}

function findRealloc(s) {
  const r = s.realloc;
  const grown = r.grown_moved.count + r.grown_in_place.count;
  const part = share(r.grown_moved.count, grown);
  const small = share(sum(r.growth_factors.slice(0, 2).map((g) => g.count)), grown);
  if (part < LIMITS.moved || r.grown_moved.bytes < LIMITS.copied * s.requested_bytes) {
    return [];
  }
  return [{act: true, text: `${percentText(part)} of the growing reallocs moved the block and copied ${bytesText(r.grown_moved.bytes)}; ` +
    `${percentText(small)} of the growing reallocs grew it by a quarter or less.`,
  advice: 'Grow by a factor of 1.5 or 2, or request the final size at once.'}];
}

function findTop(s) {
  const top = s.top_sizes.by_count.slice(0, 5);
  const part = share(sum(top.map((t) => t.count)), s.requests.sized);
  return part < LIMITS.top || top.length < 5 ? [] : [{text: `Five sizes (${top.map((t) => bytesText(t.size_bytes)).join(', ')}) account for ` +
    `${percentText(part)} of the requests.`, advice: 'Object pools for these sizes would relieve malloc.'}];
}

function findRounding(s) {
  const found = [];
  for (const [key, name] of [['glibc', 'glibc’s chunks'], ['four_per_doubling', 'four size classes per doubling']]) {
    const part = share(s.size_classes[key].internal_fragmentation_bytes, s.requests.bytes);
    if (part >= LIMITS.rounding) {
      found.push({text: `Internal fragmentation with ${name} is ${percentText(part)} of the requested bytes.`,
        advice: 'Look at the top sizes: some are just above a size class.'});
    }
  }
  return found;
}

function findRemote(s) {
  const frees = freedBlocks(s);
  const part = share(s.remote_frees, frees);
  return part < LIMITS.remote ? [] : [{act: true, text: `${percentText(part)} of the blocks are freed or resized by another thread than ` +
    'the one that allocated them.', advice: 'Allocators differ most in remote frees: compare them, and look at the table of frees between threads.'}];
}

function findLarge(s) {
  const large = s.sizes.filter((c) => c.max_bytes === null || c.max_bytes > 131072);
  const count = sum(large.map((c) => c.count));
  const part = share(sum(large.map((c) => c.bytes)), s.requests.bytes);
  return part < LIMITS.large || count < LIMITS.largeCount ? [] : [{act: true, text: `${countText(count)} requests over 128 KiB account for ` +
    `${percentText(part)} of the requested bytes.`, advice: 'Each may cost an mmap and page faults: raise the mmap threshold, or reuse the buffers.'}];
}

function findSmall(s) {
  const part = share(sum(s.sizes.filter((c) => c.max_bytes !== null && c.max_bytes <= 16).map((c) => c.count)), s.requests.sized);
  return part < LIMITS.small ? [] : [{text: `${percentText(part)} of the requests are for 16 bytes or less, for which headers cost most.`,
    advice: 'Embed such objects in the structures that point to them, or use arrays.'}];
}

function findPeak(s) {
  const most = s.sizes.reduce((a, b) => (b.live_at_peak_bytes > a.live_at_peak_bytes ? b : a), {live_at_peak_bytes: 0});
  const part = share(most.live_at_peak_bytes, s.peak.bytes);
  const through = share(s.peak.event, s.timeline.by_event.end_event.slice(-1)[0]);
  const found = [{text: `Live bytes peak at ${bytesText(s.peak.bytes)} in ${countText(s.peak.blocks)} blocks, after ` +
    `${percentText(through)} of the events` + (isNumber(s.peak.ns) ? `, ${nsText(s.peak.ns)} after the start` : '') + '.'}];
  if (part >= LIMITS.group) {
    found.push({act: true, text: `${percentText(part)} of the peak is in blocks of ` +
      `${classText(most.max_bytes, classBefore([most], 0))}, ${countText(most.live_at_peak_blocks)} of them.`,
    advice: 'Reduce the number or size of these blocks to save memory.'});
  }
  return found;
}

function findSite(s) {
  const site = s.call_sites && s.call_sites.at_peak[0];
  const part = site ? share(site.live_at_peak_bytes, s.call_sites.peak_live_bytes) : 0;
  return part < LIMITS.site || !site.frames.length ? [] : [{act: true, text: `${percentText(part)} of the peak, ` +
    `${bytesText(site.live_at_peak_bytes)}, comes from one call site: ${frameText(ownFrame(site.frames))}.`, advice: site.frames.length > 1 ? 'Its stack is in the table of call sites.' : undefined}];
}

function findZeroed(s) {
  const part = share(s.calloc.zeroed_bytes, s.requests.bytes);
  return part < LIMITS.zeroed ? [] : [{text: `calloc allocates ${percentText(part)} of the requested bytes.`,
    advice: 'If the blocks are overwritten at once, malloc avoids clearing them.'}];
}

function findTrust(s) {
  const found = [];
  if (s.lost_records) {
    found.push({act: true, text: `${countText(s.lost_records)} records were lost while recording: counts are too low.`});
  }
  if (s.order.ambiguous > LIMITS.inexact * s.events) {
    found.push({text: `The order of ${countText(s.order.ambiguous)} events is ambiguous.`});
  }
  if (s.cut_off) {
    found.push({act: true, text: 'The file is cut off: the figures cover its beginning only.'});
  }
  return found;
}

function findings(s, results) {
  const of = results.length ? [findAllocator, findLeanest, findFragmentation, findBelow, findKept].flatMap((f) => f(results)) : [];
  const uses = s ? [findPeak, findSite, findShortLived, findRealloc, findRemote, findLarge, findTop, findRounding, findSmall, findNeverFreed, findZeroed,
    findTrust].flatMap((f) => f(s)) : [];
  return [...of, ...findWeight(results), ...uses];
}
