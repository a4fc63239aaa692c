// The heap by address and time: the occupancy of resident memory, and the call sites that pin the
// unoccupied rest.

const OCCUPANCY = ['free', 'under 25 %', '25 to 50 %', '50 to 75 %', 'over 75 %'];

// Returns the index in OCCUPANCY, or -1 if nothing is resident.
function occupancyClass(resident, occupied) {
  return !resident ? -1 : !occupied ? 0 : Math.min(Math.floor(4 * occupied / resident), 3) + 1;
}

function hexText(address) {
  return '0x' + address.toString(16);
}

class AddressMap {
  constructor(w) {
    this.map = w.address_map;
    this.stat = w.stat;
    this.addresses = this.map.addresses.map(Number);
    this.names = new Map(this.map.sites.map((s) => [s.site, s.function]));
    this.cells = this.addresses.map((_, row) => this.map.moments.map((__, i) => this.cell(row, i)));
    this.grid = element('div.addressmap', {role: 'grid', 'aria-label': 'Occupancy of the heap by address and time. Arrow keys move; the details follow below.'},
      this.cells.map((row) => element('div', {role: 'row'}, row)));
    this.grid.addEventListener('keydown', (e) => this.key(e));
    this.details = element('div', {'aria-live': 'polite', 'data-address-details': true});
    this.values = element('div');
    this.element = figure('Fragmentation by address', `Each row is a range of ${bytesText(this.map.row_bytes)}, low addresses first; each column is a moment at which the pages of the process were read, ` +
      'from left to right. Dark: live blocks fill what is resident; pale: little of it is occupied. A click shows which call sites pin the pages of a range.',
    this.legend(), this.grid, this.details, details('Show as table', this.values));
    followSelection(() => this.shadeSelection());
    this.show(0, this.map.moments.length - 1);
  }

  rangeText(row) {
    return `${hexText(this.addresses[row])} to ${hexText(this.addresses[row] + this.map.row_bytes)}`;
  }

  occupancyText(row, i) {
    const [resident, occupied] = [this.map.resident_bytes[row][i], this.map.occupied_bytes[row][i]];
    return resident ? `${percentText(share(occupied, resident))} of ${bytesText(resident)} resident is occupied` : 'nothing is resident';
  }

  cell(row, i) {
    const kind = occupancyClass(this.map.resident_bytes[row][i], this.map.occupied_bytes[row][i]);
    return element('div.cell' + (kind < 0 ? '' : `.occupied-${kind}`), {role: 'gridcell', tabindex: -1, 'aria-label': `${hexText(this.addresses[row])}, ${nsText(this.map.moments[i].time_ns)}: ${this.occupancyText(row, i)}`,
      onclick: () => this.show(row, i, true)});
  }

  legend() {
    return element('p.note.mapkey', null, OCCUPANCY.map((text, kind) => element('span', null, element('span.cell.occupied-' + kind), ' ', text)));
  }

  // Makes Tab reach this cell, and shows the call sites that pin the pages of the cell.
  show(row, i, focus) {
    if (this.at) {
      this.cells[this.at[0]][this.at[1]].setAttribute('tabindex', -1);
      this.cells[this.at[0]][this.at[1]].removeAttribute('aria-selected');
    }
    const moved = !this.at || this.at[1] !== i;
    this.at = [row, i];
    const cell = this.cells[row][i];
    cell.setAttribute('tabindex', 0);
    cell.setAttribute('aria-selected', 'true');
    if (focus) {
      cell.focus();
    }
    const stranded = this.map.stranded_bytes[row][i];
    const pins = this.map.pinning[row][i];
    this.details.replaceChildren(element('p.note', null, `${this.rangeText(row)} at ${nsText(this.map.moments[i].time_ns)}: ${this.occupancyText(row, i)}; ` +
      (stranded ? `${bytesText(stranded)} are stranded in pages of which less than half is live.` : 'no live block pins a sparse page.')),
    pins.length ? table('address-pins', 'Pinning call sites', {site: textColumn('call site'), stranded: 'stranded'},
      pins.map(([site, bytes]) => [this.siteText(site), bytesText(bytes)])) : '');
    if (moved) {
      this.showValues(i);
    }
  }

  siteText(site) {
    return this.names.get(site) || (site ? `call site ${site}` : this.map.sites.length ? 'unknown call site' : 'no call sites were recorded');
  }

  showValues(i) {
    const rows = this.addresses.map((_, row) => [this.rangeText(row), bytesText(this.map.resident_bytes[row][i]), bytesText(this.map.occupied_bytes[row][i]),
      bytesText(this.map.stranded_bytes[row][i]), this.map.pinning[row][i].length ? this.siteText(this.map.pinning[row][i][0][0]) : NONE]);
    this.values.replaceChildren(table('address-map', `The heap by address at ${nsText(this.map.moments[i].time_ns)}`, {range: textColumn('addresses'), resident: 'resident', occupied: 'occupied',
      stranded: 'stranded', site: textColumn('first pinning call site')}, rows));
  }

  key(event) {
    const moves = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -Infinity], End: [0, Infinity]};
    if (!(event.key in moves)) {
      return;
    }
    const inside = (v, n) => Math.min(Math.max(v, 0), n - 1);
    const [down, right] = moves[event.key];
    this.show(inside(this.at[0] + down, this.addresses.length), inside(this.at[1] + right, this.map.moments.length), true);
    event.preventDefault();
  }

  // Draws the moments outside the selected span faint.
  shadeSelection() {
    const [from, to] = isSelected() ? [eventAt(this.stat, selection.from), eventAt(this.stat, selection.to)] : [-Infinity, Infinity];
    this.map.moments.forEach((m, i) => this.cells.forEach((row) => row[i].classList.toggle('outside', m.event < from || m.event > to)));
  }
}

function addressMapSection(w) {
  const map = w.address_map;
  return section('addresses', 'Heap by address', map && map.addresses.length ? new AddressMap(w).element
    : element('p.note', null, 'There is no map of the heap by address: the file has no maps of the pages of the process (see heaptape record --no-pages), or none with blocks.'));
}
