// Adds to the page's charts what drawings alone cannot do: a read-out, zoom, logarithmic and other axes. Everything is
// there without it.
(() => {
'use strict';
const SIDE = 1000;
const NAMES = {step: 'step', seconds: 'training time', tokens: 'tokens'};
const state = load();
const scrolled = state.scroll || 0;

function load() {
  try { return JSON.parse(sessionStorage.getItem(location.pathname)) || {}; } catch { return {}; }
}
function save() {
  state.scroll = scrollY;
  try { sessionStorage.setItem(location.pathname, JSON.stringify(state)); } catch { /* not allowed here */ }
}

function make(parent, name, attributes, text) {
  const isSvg = parent instanceof SVGElement;
  const node = isSvg ? document.createElementNS(parent.namespaceURI, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return parent.appendChild(node);
}

function short(value) {
  const size = Math.abs(value);
  if (size < 1e-12) return '0';
  if (size < 1e-3) return value.toPrecision(3).replace(/\.?0+e/, 'e').replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '');
  for (const [from, unit, letter] of [[1e12, 1e12, 'T'], [1e9, 1e9, 'G'], [1e6, 1e6, 'M'], [1e4, 1e3, 'k']])
    if (size >= from) return +(value / unit).toPrecision(4) + letter;
  return String(+value.toPrecision(6));
}
function exact(value, isPercent) {
  if (isPercent) return (100 * value).toFixed(2) + ' %';
  if (Math.abs(value) >= 1e4 || Number.isInteger(value)) return Math.round(value).toLocaleString('en');
  return String(+value.toPrecision(4));
}
function duration(seconds) {
  if (seconds < 60) return +seconds.toPrecision(3) + ' s';
  const minutes = Math.floor(seconds / 60);
  return minutes < 60 ? `${minutes} min ${Math.floor(seconds % 60)} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function roundTicks(from, to, most) {
  const least = (to - from) / most;
  const power = 10 ** Math.floor(Math.log10(least));
  const distance = [1, 2, 5, 10].map(x => x * power).find(x => x >= least * (1 - 1e-9));
  const first = Math.ceil(from / distance - 1e-9), ticks = [];
  for (let i = 0; i <= 2 * most && (first + i) * distance <= to + 1e-9 * distance; i++) ticks.push((first + i) * distance);
  return ticks;
}
function yTicks(from, to, isLog) {
  if (!isLog) return roundTicks(from, to, 5);
  const first = Math.ceil(Math.log10(from) - 1e-9), last = Math.floor(Math.log10(to) + 1e-9);
  const every = Math.max(1, Math.ceil((last - first + 1) / 5)), ticks = [];
  for (let power = first; power <= last; power += every) ticks.push(10 ** power);
  return ticks.length >= 2 ? ticks : roundTicks(from, to, 5);
}
function setLabels(box, labels, side) {
  box.textContent = '';
  for (const [place, text] of labels) make(box, 'span', {style: `${side}:${100 * place}%`}, text);
}

// Lets a stretch be chosen by dragging; what is chosen and where the pointer is, as shares of the width of `area()`.
function dragging(node, area, {chosen, moved, left, reset}) {
  let begin = null;
  const share = event => {
    const box = area();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };
  node.addEventListener('pointerdown', event => {
    if (event.button !== 0) return;
    begin = share(event);
    node.setPointerCapture(event.pointerId);
  });
  node.addEventListener('pointermove', event => moved(share(event), begin));
  node.addEventListener('pointerup', event => {
    const end = share(event);
    if (begin !== null && Math.abs(end - begin) > 0.01) chosen(Math.min(begin, end), Math.max(begin, end));
    begin = null;
    left();
  });
  node.addEventListener('pointercancel', () => { begin = null; left(); });
  node.addEventListener('pointerleave', () => { if (begin === null) left(); });
  node.addEventListener('dblclick', reset);
}

function lineChart(figure, id) {
  const data = JSON.parse(figure.querySelector('script').textContent);
  const svg = figure.querySelector('svg');
  const [grid, xLabels, yLabels] = ['.grid', '.x-labels', '.y-labels'].map(name => figure.querySelector(name));
  const curves = [...figure.querySelectorAll('.curve')];
  const marks = [...figure.querySelectorAll('.mark')];
  const view = state[id] || (state[id] = {axis: 'step', log: data.log, from: null, to: null});
  const readOut = make(figure.querySelector('.plot'), 'p', {class: 'read-out', 'aria-live': 'polite'});
  const cursor = make(svg, 'path', {class: 'cursor'});
  const chosen = make(svg, 'rect', {class: 'chosen', y: 0, height: SIDE, width: 0});
  let x, y;  // [from, to]

  const points = curve => curve[view.axis].map((at, i) => [at, curve.value[i]])
      .filter(([at, value]) => at !== null && value !== null && (!view.log || value > 0));
  const isIn = ([at]) => at >= x[0] && at <= x[1];
  const xPlace = at => (at - x[0]) / (x[1] - x[0]);
  const yPlace = value => view.log ? Math.log(value / y[0]) / Math.log(y[1] / y[0]) : (value - y[0]) / (y[1] - y[0]);

  function yRange(values) {
    let least = Infinity, greatest = -Infinity;
    for (const value of values) { least = Math.min(least, value); greatest = Math.max(greatest, value); }
    if (least > greatest) return view.log ? [1, 10] : [0, 1];
    if (view.log) {
      const factor = Math.max(1.05, (greatest / least) ** 0.04);
      return [least / factor, greatest * factor];
    }
    if (data.zero) least = Math.min(0, least);
    const size = Math.max(Math.abs(least), Math.abs(greatest));  // a difference that rounding alone makes is none
    const margin = greatest - least > 1e-9 * size ? 0.04 * (greatest - least) : Math.max(size * 0.04, 1e-12);
    return [least >= 0 && least < margin ? 0 : least - margin, greatest + margin];
  }

  function draw() {
    const all = data.curves.map(points);
    const places = all.flat().map(([at]) => at);
    const whole = [places.reduce((a, b) => Math.min(a, b), Infinity), places.reduce((a, b) => Math.max(a, b), -Infinity)];
    if (whole[0] > whole[1]) whole[0] = 0, whole[1] = 1;
    if (whole[1] === whole[0]) whole[1] += 1;
    x = view.from === null ? whole : [view.from, view.to];
    y = yRange(all.flatMap(list => list.filter(isIn)).map(([, value]) => value));
    all.forEach((list, i) => {
      const dots = data.curves[i].style === 'dots';
      curves[i].setAttribute('d', list.map(([at, value], k) => (k === 0 || dots ? 'M' : 'L') +
          (SIDE * xPlace(at)).toFixed(1) + ' ' + (SIDE * (1 - yPlace(value))).toFixed(1) + (dots ? 'h0' : '')).join(''));
    });
    const ticks = yTicks(y[0], y[1], view.log);
    grid.setAttribute('d', ticks.map(value => `M0 ${SIDE * (1 - yPlace(value))}H${SIDE}`).join(''));
    setLabels(yLabels, ticks.map(value => [yPlace(value), data.percent ? short(100 * value) + ' %' : short(value)]), 'bottom');
    const inHours = view.axis === 'seconds' && whole[1] > 7200, inMinutes = view.axis === 'seconds' && whole[1] > 120;
    const unit = inHours ? 3600 : inMinutes ? 60 : 1;
    setLabels(xLabels, roundTicks(x[0] / unit, x[1] / unit, 6).map(at => [xPlace(at * unit), short(at)]), 'left');
    figure.querySelector('.x-name').textContent =
        NAMES[view.axis] + (view.axis !== 'seconds' ? '' : inHours ? ', hours' : inMinutes ? ', minutes' : ', seconds');
    marks.forEach((mark, i) => {
      mark.style.display = view.axis === 'step' ? '' : 'none';
      if (data.marks[i]) mark.setAttribute('d', `M${SIDE * xPlace(data.marks[i][0])} 0V${SIDE}`);
    });
    resetButton.hidden = view.from === null;
    if (logButton) logButton.setAttribute('aria-pressed', view.log);
  }

  function read(share) {
    const at = x[0] + share * (x[1] - x[0]);
    let nearest = null;
    for (const curve of data.curves)
      for (const place of curve[view.axis])
        if (place !== null && place >= x[0] && place <= x[1] && (nearest === null || Math.abs(place - at) < Math.abs(nearest - at))) nearest = place;
    if (nearest === null) return;
    cursor.setAttribute('d', `M${SIDE * xPlace(nearest)} 0V${SIDE}`);
    readOut.textContent = (view.axis === 'seconds' ? duration(nearest) : NAMES[view.axis] + ' ' + exact(nearest));
    for (const curve of data.curves) {
      let best = -1;  // the last one up to there
      curve[view.axis].forEach((place, i) => { if (place !== null && place <= nearest && curve.value[i] !== null) best = i; });
      if (best < 0) continue;
      readOut.append(` · ${curve.name} `);
      make(readOut, 'b', {}, exact(curve.value[best], data.percent));
    }
    for (const [step, text] of data.marks)
      if (view.axis === 'step' && Math.abs(xPlace(step) - share) < 0.01) readOut.append(' · ' + text);
  }

  function zoom(from, to) {
    if (from !== null && !(to - from > 1e-6 * Math.abs(to))) return;  // labels would not differ
    view.from = from; view.to = to;
    save(); draw();
  }
  const controls = make(figure.querySelector('figcaption'), 'span', {class: 'controls'});
  const resetButton = make(controls, 'button', {type: 'button', title: 'show all; so does a double click'}, 'Whole run');
  const reset = () => zoom(null, null);
  resetButton.onclick = reset;
  const axes = Object.keys(NAMES).filter(axis => data.curves.every(curve => curve[axis].some(place => place !== null)));
  if (!axes.includes(view.axis)) view.axis = 'step';
  if (axes.length > 1) {
    const select = make(controls, 'select', {'aria-label': 'horizontal axis'});
    for (const axis of axes) make(select, 'option', {value: axis}, axis === 'seconds' ? 'by time' : 'by ' + axis);
    select.value = view.axis;
    select.onchange = () => { view.axis = select.value; zoom(null, null); };
  }
  let logButton = null;
  if (data.curves.some(curve => curve.value.some(value => value > 0))) {
    logButton = make(controls, 'button', {type: 'button', 'aria-pressed': view.log, title: 'logarithmic vertical axis'}, 'log');
    logButton.onclick = () => { view.log = !view.log; save(); draw(); };
  }
  dragging(svg, () => svg.getBoundingClientRect(), {
    chosen: (a, b) => zoom(x[0] + a * (x[1] - x[0]), x[0] + b * (x[1] - x[0])),
    moved: (at, begin) => {
      read(at);
      chosen.setAttribute('x', SIDE * Math.min(at, begin ?? at));
      chosen.setAttribute('width', begin === null ? 0 : SIDE * Math.abs(at - begin));
    },
    left: () => { chosen.setAttribute('width', 0); cursor.setAttribute('d', ''); readOut.textContent = ''; },
    reset,
  });
  // The same by keys: a place to read, and a zoom around it.
  let at = 0.5;
  svg.setAttribute('tabindex', 0);
  svg.addEventListener('keydown', event => {
    const moves = {ArrowLeft: -0.01, ArrowRight: 0.01};
    if (event.key in moves) at = Math.min(1, Math.max(0, at + moves[event.key]));
    else if (event.key === '+') {
      const middle = x[0] + at * (x[1] - x[0]), reach = (x[1] - x[0]) / 4;
      zoom(middle - reach, middle + reach);
      at = 0.5;
    } else if (event.key === '-' || event.key === 'Escape') reset();
    else return;
    event.preventDefault();
    read(at);
  });
  draw();
}

function timeline(figure, id) {
  const rows = [...figure.querySelectorAll('.row svg')];
  if (rows.length === 0) return;
  const length = +figure.dataset.length, unit = figure.dataset.unit;
  const view = state[id] || (state[id] = {from: 0, to: length});
  if (view.length !== length) Object.assign(view, {from: 0, to: length, length});
  const area = figure.querySelector('.rows');
  const readOut = make(figure.querySelector('.time-axis'), 'p', {class: 'read-out', 'aria-live': 'polite'});
  const chosen = rows.map(row => make(row, 'rect', {class: 'chosen', y: 0, height: 100, width: 0}));
  const box = () => rows[0].getBoundingClientRect();
  function show(from, to) {
    if (!(to - from > 1e-6 * length)) return;
    Object.assign(view, {from, to});
    save();
    for (const row of rows) row.setAttribute('viewBox', `${from} 0 ${to - from} 100`);
    setLabels(figure.querySelector('.x-labels'),
        roundTicks(from, to, 6).map(at => [(at - from) / (to - from), String(+at.toPrecision(6))]), 'left');
    resetButton.hidden = from === 0 && to === length;
  }
  const controls = make(figure.querySelector('figcaption'), 'span', {class: 'controls'});
  const resetButton = make(controls, 'button', {type: 'button'}, 'Whole step');
  const reset = () => show(0, length);
  const zoomBy = factor => {
    const middle = (view.from + view.to) / 2, reach = Math.min(length, (view.to - view.from) * factor) / 2;
    const from = Math.max(0, Math.min(middle - reach, length - 2 * reach));
    show(from, from + 2 * reach);
  };
  resetButton.onclick = reset;
  for (const [text, name, factor] of [['−', 'zoom out', 2], ['+', 'zoom in', 0.5]]) {
    const button = make(controls, 'button', {type: 'button', 'aria-label': name}, text);
    button.onclick = () => zoomBy(factor);
  }
  const place = share => view.from + share * (view.to - view.from);
  dragging(area, box, {
    chosen: (a, b) => show(place(a), place(b)),
    moved: (at, begin) => {
      readOut.textContent = `at ${+place(at).toPrecision(5)} ${unit}`;
      for (const rect of chosen) {
        rect.setAttribute('x', place(Math.min(at, begin ?? at)));
        rect.setAttribute('width', begin === null ? 0 : place(Math.max(at, begin)) - place(Math.min(at, begin)));
      }
    },
    left: () => { readOut.textContent = ''; for (const rect of chosen) rect.setAttribute('width', 0); },
    reset,
  });
  area.addEventListener('pointermove', event => {
    const title = event.target.querySelector && event.target.querySelector('title');
    if (title && event.target.matches('.block')) readOut.append(' · ' + title.textContent);
  });
  area.setAttribute('tabindex', 0);
  area.addEventListener('keydown', event => {
    const width = view.to - view.from;
    const move = by => { const from = Math.max(0, Math.min(length - width, view.from + by)); show(from, from + width); };
    if (event.key === '+') zoomBy(0.5);
    else if (event.key === '-') zoomBy(2);
    else if (event.key === 'Escape') reset();
    else if (event.key === 'ArrowLeft') move(-width / 8);
    else if (event.key === 'ArrowRight') move(width / 8);
    else return;
    event.preventDefault();
  });
  show(view.from, view.to);
}

document.querySelectorAll('.line-chart').forEach((figure, i) => lineChart(figure, 'line' + figure.querySelector('h3').textContent + i));
document.querySelectorAll('.timeline').forEach((figure, i) => timeline(figure, 'timeline' + i));

// A page of a run that trains loads itself anew, and stays as it was left. Not while somebody drags.
const seconds = +document.documentElement.dataset.refresh;
if (seconds > 0) {
  history.scrollRestoration = 'manual';
  scrollTo(0, scrolled);
  let isHeld = false;
  addEventListener('pointerdown', () => { isHeld = true; });
  for (const name of ['pointerup', 'pointercancel']) addEventListener(name, () => { isHeld = false; });
  const again = () => {
    if (isHeld || document.activeElement instanceof HTMLSelectElement) return void setTimeout(again, 1000);
    state.open = [...document.querySelectorAll('details')].map(details => details.open);
    save();
    location.reload();
  };
  [...document.querySelectorAll('details')].forEach((details, i) => { details.open = !!(state.open || [])[i]; });
  setTimeout(again, 1000 * seconds);
}
})();
