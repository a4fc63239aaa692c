// Elements are made here and nowhere else; text is only ever set as text, so that names in a file stay names.

// Children may be elements, text, numbers, arrays of these, or null.
function append(to, child) {
  if (Array.isArray(child)) {
    child.forEach((c) => append(to, c));
  } else if (child !== null && child !== undefined) {
    to.append(child instanceof Node ? child : String(child));
  }
  return to;
}

// element('p.note', {id: 'x', onclick: f}, children…): classes after the dots, attributes, listeners.
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

// A figure with its title, and a note below it that explains how to read it.
function figure(title, note, ...children) {
  figures++;
  const id = 'figure-' + figures;
  return element('figure', {'aria-labelledby': id}, element('figcaption', {id}, title),
    note ? element('p.note', null, note) : null, children);
}

const sections = new Map();

// Of several workloads each has its own.
function section(name, title, ...children) {
  const n = (sections.get(name) || 0) + 1;
  sections.set(name, n);
  const id = n > 1 ? `${name}-${n}` : name;
  return element('section', {id, 'aria-labelledby': id + '-title'}, element('h2', {id: id + '-title'}, title), children);
}

// A column of text; others are of numbers, which are right-aligned.
function textColumn(title) {
  return {title, text: true};
}

// A table that can be found by its name, and scrolls by itself. Its cells have data-column.
function tableOf(name, classes, caption, head, body) {
  return element('div.scroll', {tabindex: 0, role: 'region', 'aria-label': caption},
    element('table' + classes, {'data-table': name}, element('caption', null, caption),
      element('thead', null, element('tr', null, head)), element('tbody', null, body)));
}

// columns: {name: title or textColumn(title)}; each row is its cells in the same order, the first one its head.
function table(name, caption, columns, rows) {
  const all = Object.entries(columns).map(([column, c]) => ({column, title: c.text ? c.title : c, number: c.text ? '' : '.number'}));
  return tableOf(name, '', caption, all.map((c) => element('th' + c.number, {scope: 'col'}, c.title)),
    rows.map((row) => element('tr', null, row.map((cell, i) => element((i ? 'td' : 'th') + all[i].number,
      {scope: i ? null : 'row', 'data-column': all[i].column}, cell)))));
}

function details(summary, ...children) {
  return element('details', null, element('summary', null, summary), children);
}

// The colour of series `i`, as the style has it for light, dark or print.
function colour(i) {
  return getComputedStyle(document.documentElement).getPropertyValue('--s' + (i % 8)).trim();
}

function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
}
