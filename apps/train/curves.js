/* SPDX-License-Identifier: MIT */
'use strict';
const live = document.getElementById('live'), said = document.getElementById('said');
const permanent = said.textContent; /* why nothing can be saved */
let noted; /* how many requests of the buttons had been carried out */

async function look() {
  try {
    const reply = await fetch('live');
    if (!reply.ok) throw new Error(reply.status);
    live.innerHTML = await reply.text();
    const number = document.getElementById('note').dataset.number;
    if (noted !== undefined && number !== noted) said.textContent = permanent; /* it is done, or has failed */
    noted = number;
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
