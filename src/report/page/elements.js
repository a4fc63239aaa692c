// Creates all elements of the page. Text is only set as text, never as HTML, because names come
// from the recorded file.

// Appends children, which are elements, texts, numbers, null, or arrays of them.
function append(to, child) {
  if (Array.isArray(child)) {
    child.forEach((c) => append(to, c));
  } else if (child !== null && child !== undefined) {
    to.append(child instanceof Node ? child : String(child));
  }
  return to;
}

// Creates an element: element('p.note', {id: 'x', onclick: f}, children…). Classes follow the dots.
// Attributes include listeners.
function element(what, attributes, ...children) {
  const [tag, ...classes] = what.split('.');
  const e = document.createElement(tag);
  if (classes.length) {
    e.className = classes.join(' ');
  }
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) {
      e.addEventListener(name.slice(2), value);
    } else if (value !== null && value !== undefined && value !== false) {
      e.setAttribute(name, value === true ? '' : value);
    }
  }
  return append(e, children);
}

let figures = 0;

// A figure with a title and a note that explains how to read the figure.
function figure(title, note, ...children) {
  figures++;
  const id = 'figure-' + figures;
  return element('figure', {'aria-labelledby': id}, element('figcaption', {id}, title),
    note ? element('p.note', null, note) : null, children);
}

const sections = new Map();

// Creates a section. If several workloads have a section with this name, the id of each further
// section has a number.
function section(name, title, ...children) {
  const n = (sections.get(name) || 0) + 1;
  sections.set(name, n);
  const id = n > 1 ? `${name}-${n}` : name;
  return element('section', {id, 'aria-labelledby': id + '-title'}, element('h2', {id: id + '-title'}, title), children);
}

// A column of text. Other columns hold numbers, which are right-aligned.
function textColumn(title) {
  return {title, text: true};
}

// A table with a name and its own scroll box. Cells have data-column.
function tableOf(name, classes, caption, head, body) {
  return element('div.scroll', {tabindex: 0, role: 'region', 'aria-label': caption},
    element('table' + classes, {'data-table': name}, element('caption', null, caption),
      element('thead', null, element('tr', null, head)), element('tbody', null, body)));
}

// columns: {name: title or textColumn(title)}. A row is an array of cells in the same order; the
// first cell is its head.
function table(name, caption, columns, rows) {
  const all = Object.entries(columns).map(([column, c]) => ({column, title: c.text ? c.title : c, number: c.text ? '' : '.number'}));
  return tableOf(name, '', caption, all.map((c) => element('th' + c.number, {scope: 'col'}, c.title)),
    rows.map((row) => element('tr', null, row.map((cell, i) => element((i ? 'td' : 'th') + all[i].number,
      {scope: i ? null : 'row', 'data-column': all[i].column}, cell)))));
}

function details(summary, ...children) {
  return element('details', null, element('summary', null, summary), children);
}

// Returns the colour of series `i` in the current style (light, dark or print).
function colour(i) {
  return getComputedStyle(document.documentElement).getPropertyValue('--s' + (i % 8)).trim();
}

function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}
