// Charts of lines over events or time, by dygraphs. All of a page share their axis: one crosshair, one zoom.

const DASHES = [null, [7, 3], [2, 3], [9, 3, 2, 3], [12, 4], [4, 4], [9, 2, 2, 2, 2, 2], [1, 3]];
const TABLE_ROWS = 24;
const charts = [];

// dygraphs' own legend sets style attributes, which the page's policy forbids; there is one of our own.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((p) => p !== Dygraph.Plugins.Legend);

// Series with points [x, y] of their own, as dygraphs' rows [x, y of each or null]; the last point at an x counts.
function merge(series) {
  const rows = new Map();
  series.forEach((s, i) => s.points.forEach(([x, y]) => {
    if (!rows.has(x)) {
      rows.set(x, new Array(series.length).fill(null));
    }
    rows.get(x)[i] = y;
  }));
  return [...rows.entries()].sort((a, b) => a[0] - b[0]).map(([x, ys]) => [x, ...ys]);
}

// The value of a series at or before row `i`.
function valueBefore(rows, i, column) {
  while (i >= 0 && rows[i][column] === null) {
    i--;
  }
  return i >= 0 ? rows[i][column] : null;
}

function seriesColour(s) {
  return s.colour === undefined ? colourOf('ink') : colour(s.colour);
}

class Lines {
  // {title, note, unit, group, from: (axis) => series or null, stacked, zero}; series: {name, points, colour, dash, hidden}
  constructor(options) {
    this.options = options;
    this.box = element('div.lines', {tabindex: 0, role: 'group', 'aria-roledescription': 'chart',
      'aria-label': options.title + '. Arrow keys move the crosshair, plus and minus zoom, 0 resets the zoom.'});
    this.legend = element('div.legend');
    this.readout = element('p.readout', {'aria-live': 'polite'});
    this.tables = element('div');
    this.box.addEventListener('keydown', (e) => this.key(e));
    this.element = figure(options.title, options.note, this.legend, this.box, this.readout, this.tables);
    charts.push(this);
  }

  draw(axis) {
    const series = (this.options.from(axis) || []).filter((s) => s.points.length);
    this.element.hidden = !series.length;
    if (this.graph) {
      this.graph.destroy();
      this.graph = null;
    }
    if (!series.length) {
      return;
    }
    this.axis = axis;
    this.series = series;
    this.rows = merge(series);
    this.graph = new Dygraph(this.box, this.rows, this.settings());
    this.drawLegend();
    this.tables.replaceChildren(details('Show as table', this.asTable()));
    this.showValues(this.rows.length - 1);
  }

  settings() {
    const grid = colourOf('grid');
    const x = TEXT_OF[this.axis];
    const y = TEXT_OF[this.options.unit];
    const each = {};
    this.series.forEach((s, i) => {
      each[s.name] = {strokePattern: s.dash === undefined ? DASHES[i % DASHES.length] : s.dash,
        strokeWidth: s.width || 1.5, fillGraph: Boolean(s.fill) || Boolean(this.options.stacked)};
    });
    return {
      labels: ['x', ...this.series.map((s) => s.name)],
      colors: this.series.map(seriesColour),
      series: each,
      visibility: this.series.map((s) => !s.hidden),
      connectSeparatedPoints: true,
      stackedGraph: Boolean(this.options.stacked),
      fillAlpha: this.options.stacked ? 0.6 : 0.12,
      includeZero: this.options.zero !== false,
      gridLineColor: grid, axisLineColor: grid,
      axisLabelFontSize: 12,
      axes: {
        x: {axisLabelFormatter: x, valueFormatter: x, pixelsPerLabel: 70, ticker: Dygraph.numericTicks},
        y: {axisLabelFormatter: y, valueFormatter: y, axisLabelWidth: 64, labelsKMG2: this.options.unit === 'bytes'},
      },
      xRangePad: 2,
      highlightCircleSize: 3,
      plugins: [new Dygraph.Plugins.Crosshair({direction: 'vertical'})],
      highlightCallback: (event, x) => showAt(x, this),
      unhighlightCallback: () => charts.forEach((c) => c.rest()),
    };
  }

  drawLegend() {
    this.values = this.series.map(() => element('span.value'));
    this.legend.replaceChildren(...this.series.map((s, i) => {
      const line = element('span.line');
      line.style.borderTopColor = seriesColour(s);
      line.style.borderTopStyle = (s.dash === undefined ? DASHES[i % DASHES.length] : s.dash) ? 'dashed' : 'solid';
      const button = element('button', {type: 'button', 'aria-pressed': String(!s.hidden), title: 'Show or hide',
        onclick: () => {
          const shown = button.getAttribute('aria-pressed') !== 'true';
          button.setAttribute('aria-pressed', String(shown));
          this.graph.setVisibility(i, shown);
        }}, line, s.name, ' ', this.values[i]);
      return button;
    }));
  }

  // Writes the values at a row.
  showValues(row) {
    this.row = row;
    const y = TEXT_OF[this.options.unit];
    this.series.forEach((s, i) => {
      const value = valueBefore(this.rows, row, i + 1);
      this.values[i].textContent = value === null ? NONE : y(value);
    });
    const x = this.rows[row][0];
    this.readout.textContent = this.axis === 'ns' ? `at ${nsText(x)}` : `at event ${countText(x)}`;
  }

  // The crosshair at the row nearest to `x`.
  showAt(x) {
    if (this.graph) {
      const row = nearestRow(this.rows, x);
      this.graph.setSelection(row);
      this.showValues(row);
    }
  }

  // No crosshair: the legend has the values at the end.
  rest() {
    if (this.graph) {
      this.graph.clearSelection();
      this.showValues(this.rows.length - 1);
    }
  }

  key(event) {
    const step = event.shiftKey ? 10 : 1;
    const moves = {ArrowLeft: -step, ArrowRight: step, Home: -Infinity, End: Infinity};
    const zooms = {'+': 0.5, '=': 0.5, '-': 2};
    if (event.target !== this.box || !this.graph) {
      return;
    }
    if (event.key in moves) {
      const row = Math.min(Math.max(this.row + moves[event.key], 0), this.rows.length - 1);
      showAt(this.rows[row][0], null);
    } else if (event.key in zooms) {
      this.zoom(zooms[event.key]);
    } else if (event.key === '0' || event.key === 'Escape') {
      this.graph.resetZoom();
    } else {
      return;
    }
    event.preventDefault();
  }

  zoom(factor) {
    const [low, high] = this.graph.xAxisRange();
    const [min, max] = this.graph.xAxisExtremes();
    const middle = this.rows[this.row][0] >= low && this.rows[this.row][0] <= high ? this.rows[this.row][0] : (low + high) / 2;
    const half = (high - low) * factor / 2;
    this.graph.updateOptions({dateWindow: [Math.max(middle - half, min), Math.min(middle + half, max)]});
  }

  asTable() {
    const y = TEXT_OF[this.options.unit];
    const n = Math.min(this.rows.length, TABLE_ROWS);
    const rows = Array.from({length: n}, (_, k) => {
      const i = n > 1 ? Math.round(k * (this.rows.length - 1) / (n - 1)) : 0;
      const x = this.rows[i][0];
      return [this.axis === 'ns' ? nsText(x) : countText(x),
        ...this.series.map((s, c) => {
          const v = valueBefore(this.rows, i, c + 1);
          return v === null ? NONE : y(v);
        })];
    });
    return table('values', this.options.title, {at: textColumn(this.axis === 'ns' ? 'time' : 'event'),
      ...Object.fromEntries(this.series.map((s, i) => ['series-' + i, s.name]))}, rows);
  }
}

function nearestRow(rows, x) {
  let low = 0;
  let high = rows.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle][0] < x) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low > 0 && x - rows[low - 1][0] < rows[low][0] - x ? low - 1 : low;
}

// One crosshair for all charts; `from` has its own already.
let showing = false;

function showAt(x, from) {
  if (showing) {
    return;
  }
  showing = true;
  charts.forEach((c) => {
    if (c !== from) {
      c.showAt(x);
    } else {
      c.showValues(nearestRow(c.rows, x));
    }
  });
  showing = false;
}

let synchronized = [];

// Draws all charts over events or time ('ns'). Those of one workload zoom together; one that is of all goes with the first.
function drawLines(axis) {
  synchronized.forEach((s) => s.detach());
  charts.forEach((c) => c.draw(axis));
  const drawn = charts.filter((c) => c.graph);
  const groups = [...new Set(drawn.map((c) => c.options.group || 0))];
  synchronized = groups.map((g) => drawn.filter((c) => (c.options.group || 0) === g).map((c) => c.graph))
    .filter((graphs) => graphs.length > 1)
    .map((graphs) => Dygraph.synchronize(graphs, {zoom: true, selection: false, range: false}));
}
