// Line charts over events or time, drawn by dygraphs. All charts of a page share the axis, a
// crosshair and a selection. Charts of the whole run shade the selection; the other charts zoom to
// the selection.

const DASHES = [null, [7, 3], [2, 3], [9, 3, 2, 3], [12, 4], [4, 4], [9, 2, 2, 2, 2, 2], [1, 3]];
const TABLE_ROWS = 24;
const charts = [];

// The legend of dygraphs sets style attributes, which the content security policy of the page
// forbids. The page therefore has a separate legend.
Dygraph.PLUGINS = Dygraph.PLUGINS.filter((p) => p !== Dygraph.Plugins.Legend);

// Merges series, each with its points [x, y], into rows [x, y of each series or null]. If a series
// has several points at one x, the last point counts.
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

// Returns the value of a series at row `i` or, without a value there, the previous value.
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
  // options: {title, note, unit, from: (axis) => series or null, stacked, zero, whole: shows the
  // whole run}. series: {name, points, colour, dash, hidden}.
  constructor(options) {
    this.options = options;
    this.box = element('div.lines', {tabindex: 0, role: 'group', 'aria-roledescription': 'chart',
      'aria-label': options.title + '. Arrow keys move the crosshair, with Shift they select; plus and minus change the selection, 0 ends it.'});
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
    this.box.style.setProperty('--width', this.box.clientWidth);
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
      axisLabelFontSize: 12, xAxisHeight: 24,
      axes: {
        x: {axisLabelFormatter: x, valueFormatter: x, pixelsPerLabel: 55, ticker: Dygraph.numericTicks},
        y: {axisLabelFormatter: y, valueFormatter: y, axisLabelWidth: 64, labelsKMG2: this.options.unit === 'bytes'},
      },
      xRangePad: 2,
      highlightCircleSize: 3,
      dateWindow: this.window(),
      plugins: [new Dygraph.Plugins.Crosshair({direction: 'vertical'})],
      interactionModel: {pointerdown: (e) => this.press(e), pointermove: (e) => this.drag(e), pointerup: (e) => this.release(e),
        pointercancel: () => this.shade(null), dblclick: () => select(null)},
      underlayCallback: (canvas, area, graph) => this.drawShade(canvas, area, graph),
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

  // Shows the values of a row in the legend.
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

  // Moves the crosshair to the row nearest to `x`.
  showAt(x) {
    if (this.graph) {
      const row = nearestRow(this.rows, x);
      const [low, high] = this.graph.xAxisRange();
      this.showValues(row);
      // dygraphs has no position for a row outside the drawn range.
      if (this.rows[row][0] >= low && this.rows[row][0] <= high) {
        this.graph.setSelection(row);
      } else {
        this.graph.clearSelection();
      }
    }
  }

  // Removes the crosshair. The legend then shows the values at the end.
  rest() {
    if (this.graph) {
      this.graph.clearSelection();
      this.showValues(this.rows.length - 1);
    }
  }

  key(event) {
    const moves = {ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity};
    const sizes = {'+': 0.5, '=': 0.5, '-': 2};
    if (event.target !== this.box || !this.graph) {
      return;
    }
    if (event.key in moves) {
      const step = moves[event.key] * Math.max(Math.round(this.rows.length / 100), 1);
      const row = Math.min(Math.max(this.row + step, 0), this.rows.length - 1);
      this.anchor = event.shiftKey && this.anchor !== undefined ? this.anchor : this.rows[event.shiftKey ? this.row : row][0];
      showAt(this.rows[row][0], null);
      if (event.shiftKey) {
        select(this.anchor, this.rows[row][0]);
        showAt(this.rows[row][0], null);
      }
    } else if (event.key in sizes) {
      this.resize(sizes[event.key]);
    } else if (event.key === '0' || event.key === 'Escape') {
      select(null);
    } else {
      return;
    }
    event.preventDefault();
  }

  // Returns the visible range, or null for the whole run.
  window() {
    return isSelected() && !this.options.whole ? [selection.from, selection.to] : null;
  }

  follow() {
    if (this.graph) {
      this.shaded = null;
      this.graph.updateOptions({dateWindow: this.window()});
    }
  }

  shade(range) {
    this.shaded = range;
    this.graph.updateOptions({});
  }

  // Shades the span that the user is selecting. In a chart of the whole run, also shades the
  // selection.
  drawShade(canvas, area, graph) {
    const range = this.shaded || (this.options.whole && isSelected() ? [selection.from, selection.to] : null);
    if (range) {
      const [from, to] = range.map((x) => graph.toDomXCoord(x)).sort((a, b) => a - b);
      canvas.fillStyle = colourOf('shade');
      canvas.fillRect(from, area.y, Math.max(to - from, 1), area.h);
    }
  }

  xOf(event) {
    const [low, high] = this.graph.xAxisExtremes();
    return Math.min(Math.max(this.graph.toDataXCoord(this.graph.eventToDomCoords(event)[0]), Math.max(low, 0)), high);
  }

  press(event) {
    if (event.button === 0) {
      this.pressed = {x: this.xOf(event), at: event.clientX};
      event.target.setPointerCapture(event.pointerId);
      event.preventDefault();
    }
  }

  drag(event) {
    if (this.pressed) {
      this.shade([this.pressed.x, this.xOf(event)]);
    }
  }

  // Ends a drag. A drag of a few pixels selects nothing.
  release(event) {
    const pressed = this.pressed;
    this.pressed = null;
    if (pressed && Math.abs(event.clientX - pressed.at) > 4) {
      select(pressed.x, this.xOf(event));
    } else if (pressed) {
      this.shade(null);
    }
  }

  // Scales the selection by `factor`. The crosshair is the center if it is inside the selection.
  resize(factor) {
    const [min, max] = [this.rows[0][0], this.rows[this.rows.length - 1][0]];
    const [low, high] = isSelected() ? [selection.from, selection.to] : [min, max];
    const x = this.rows[this.row][0];
    const middle = x > low && x < high ? x : (low + high) / 2;
    const half = (high - low) * factor / 2;
    const [from, to] = [Math.max(middle - half, min), Math.min(middle + half, max)];
    select(from <= min && to >= max ? null : from, to);
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

// Moves the crosshair of all charts except `from`, which has moved its crosshair already.
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

// Draws all charts over 'events' or time ('ns').
function drawLines(axis) {
  setAxis(axis);
  document.documentElement.dataset.drawn = matchMedia('(prefers-color-scheme: dark) and (not print)').matches ? 'dark' : 'light';
  charts.forEach((c) => c.draw(axis));
  select(selection.from, selection.to);
}
