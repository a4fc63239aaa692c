// Formats numbers with units. Bytes use powers of 1,024, counts and times powers of 1,000.

const NONE = '–';

function isNumber(v) {
  return typeof v === 'number' && Number.isFinite(v);
}

// Formats three significant digits: 1.23, 12.3, 123.
function threeDigits(v) {
  const size = Math.abs(v);
  return v.toFixed(size >= 99.95 || size === 0 ? 0 : size >= 9.995 ? 1 : 2);
}

function scaled(v, step, units) {
  let unit = 0;
  while (Math.abs(v) >= step * 0.9995 && unit < units.length - 1) {
    v /= step;
    unit++;
  }
  return (Number.isInteger(v) ? String(v) : threeDigits(v)) + '\u00a0' + units[unit];
}

function bytesText(v) {
  return isNumber(v) ? scaled(v, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB']) : NONE;
}

function nsText(v) {
  return isNumber(v) ? scaled(v, 1000, ['ns', 'µs', 'ms', 's', 'ks']) : NONE;
}

// Formats all digits, in groups of three.
function countText(v) {
  return isNumber(v) ? String(Math.round(v)).replace(/\B(?=(\d{3})+(?!\d))/g, '\u202f') : NONE;
}

// Formats a short form for axes: 12.3 M.
function shortText(v) {
  return isNumber(v) ? scaled(v, 1000, ['', 'k', 'M', 'G', 'T', 'P']).trim() : NONE;
}

function ratioText(v) {
  return isNumber(v) ? v.toFixed(2) + '\u00a0×' : NONE;
}

function percentText(v) {
  if (!isNumber(v)) {
    return NONE;
  }
  const text = v >= 0.0995 || v === 0 ? (100 * v).toFixed(0) : v < 0.0001 ? '<\u202f0.01' : (100 * v).toPrecision(2);
  return text + '\u00a0%';
}

function rateText(v) {
  return isNumber(v) ? shortText(v) + '/s' : NONE;
}

const TEXT_OF = {
  bytes: bytesText, ns: nsText, count: countText, ratio: ratioText, share: percentText, rate: rateText,
  events: (v) => shortText(v), byte_rate: (v) => bytesText(v) + '/s',
};

// Returns the range of sizes of a class: "up to 8 B", "33 to 64 B", "over 8 GiB". `before` is the
// limit of the next smaller class. A `max` of null means that there is no limit.
function classText(max, before) {
  if (max === null || max === undefined) {
    return 'over ' + bytesText(before);
  }
  return before ? `${before < 1024 ? before + 1 : bytesText(before)} to ${bytesText(max)}` : 'up to ' + bytesText(max);
}

function share(part, of) {
  return of > 0 ? part / of : 0;
}

function sum(values) {
  return values.reduce((a, b) => a + b, 0);
}
