/* SPDX-License-Identifier: MIT */
'use strict';
const canvas = document.getElementById('canvas'), pen = canvas.getContext('2d'), said = document.getElementById('said');
let drawing = false, asking = false, again = null;
let round = 0; /* increases when the drawing is cleared or an image is given: earlier answers are then ignored */

function clear() {
  pen.fillStyle = '#000';
  pen.fillRect(0, 0, canvas.width, canvas.height);
}
function element(name, parent, text) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}
function show(answer) {
  const classes = document.getElementById('classes'), layers = document.getElementById('layers');
  classes.replaceChildren();
  layers.replaceChildren();
  const best = answer.classes[0];
  said.textContent = 'Most likely ' + best.name + ', ' + (100 * best.probability).toFixed(1) + '%.';
  for (const one of answer.classes) {
    const row = element('tr', classes);
    element('td', row, one.name);
    element('td', row, (100 * one.probability).toFixed(1) + '%');
    element('span', element('td', row)).className = 'bar';
    row.querySelector('.bar').style.width = 100 * one.probability + '%';
  }
  for (const one of answer.layers) {
    element('div', layers, one.layer + (one.shape ? ', ' + one.shape : ''));
    const picture = element('img', layers);
    picture.src = 'data:image/png;base64,' + one.png;
    picture.alt = 'Values of ' + one.layer;
  }
}
/* One request at a time; once it is answered, the latest image is sent. */
async function ask(picture, asked) {
  if (asked !== round) return;
  if (asking) { again = [picture, asked]; return; }
  asking = true;
  try {
    const reply = await fetch('classify', {method: 'POST', body: picture});
    const answer = await reply.json();
    if (asked === round && answer.error) said.textContent = answer.error;
    else if (asked === round) show(answer);
  } catch (problem) {
    said.textContent = 'The program does not answer: has it ended?';
  }
  asking = false;
  if (again) { const next = again; again = null; ask(...next); }
}
function askAboutCanvas() {
  const asked = round;
  canvas.toBlob(picture => ask(picture, asked), 'image/png');
}
function place(event) {
  const box = canvas.getBoundingClientRect();
  return [(event.clientX - box.left) * canvas.width / box.width, (event.clientY - box.top) * canvas.height / box.height];
}
canvas.addEventListener('pointerdown', event => {
  drawing = true;
  canvas.setPointerCapture(event.pointerId);
  pen.lineWidth = 20;
  pen.lineCap = pen.lineJoin = 'round';
  pen.strokeStyle = '#fff';
  pen.beginPath();
  pen.moveTo(...place(event));
  pen.lineTo(...place(event));
  pen.stroke();
});
canvas.addEventListener('pointermove', event => {
  if (!drawing) return;
  pen.lineTo(...place(event));
  pen.stroke();
  askAboutCanvas();
});
canvas.addEventListener('pointerup', () => { drawing = false; askAboutCanvas(); });
document.getElementById('clear').addEventListener('click', () => {
  round++;
  clear();
  said.textContent = 'Nothing drawn yet.';
  document.getElementById('classes').replaceChildren();
  document.getElementById('layers').replaceChildren();
});
/* An image that is given is shown in the drawing area; the request contains the file itself. */
async function take(file) {
  ask(file, ++round);
  clear();
  try {
    const picture = await createImageBitmap(file);
    const scale = Math.min(canvas.width / picture.width, canvas.height / picture.height);
    const width = picture.width * scale, height = picture.height * scale;
    pen.drawImage(picture, (canvas.width - width) / 2, (canvas.height - height) / 2, width, height);
  } catch (problem) { /* the answer says what is wrong with the file */ }
}
document.getElementById('file').addEventListener('change', event => { if (event.target.files[0]) take(event.target.files[0]); });
document.addEventListener('dragover', event => { event.preventDefault(); canvas.classList.add('over'); });
document.addEventListener('dragleave', () => canvas.classList.remove('over'));
document.addEventListener('drop', event => {
  event.preventDefault();
  canvas.classList.remove('over');
  if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
});
clear();
