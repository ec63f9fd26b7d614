/* SPDX-License-Identifier: MIT */
'use strict';
const live = document.getElementById('live'), said = document.getElementById('said');
let noted = ''; /* what had come of the buttons */

async function look() {
  try {
    const reply = await fetch('live');
    if (!reply.ok) throw new Error(reply.status);
    live.innerHTML = await reply.text();
    const note = document.getElementById('note').textContent;
    if (note !== noted) said.textContent = ''; /* it is done, or has failed */
    noted = note;
    setTimeout(look, 1000);
  } catch (problem) {
    said.textContent = 'The program has ended. What it showed last stays here.';
    for (const button of document.querySelectorAll('button')) button.disabled = true;
  }
}
for (const name of ['save', 'stop']) {
  document.getElementById(name).addEventListener('click', async event => {
    event.target.disabled = true;
    try {
      said.textContent = await (await fetch(name, {method: 'POST'})).text();
    } catch (problem) {
      said.textContent = 'The program does not answer: it has ended.';
    }
    if (name === 'save') setTimeout(() => { event.target.disabled = false; }, 1000);
  });
}
look();
