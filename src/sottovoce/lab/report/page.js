"use strict";
// A button beside each command that copies it
for (const block of document.querySelectorAll("pre.command")) {
  const words = block.textContent;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(words);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block.querySelector("code"));
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  block.append(button);
}
// Under the pointer a line, and in the legend the values there, out of the table of numbers
for (const section of document.querySelectorAll("section.figure")) {
  const rows = [...section.querySelectorAll(".numbers tbody tr")];
  const values = [...section.querySelectorAll(".legend .value")];
  const place = section.querySelector(".at .x");
  if (!place) continue;
  const ends = [place.textContent, ...values.map((value) => value.textContent)];
  const show = (texts) => {
    place.textContent = texts[0];
    values.forEach((value, k) => { value.textContent = texts[k + 1]; });
  };
  for (const chart of section.querySelectorAll(".chart")) {
    const [left, right, low, high] = ["left", "right", "low", "high"].map((k) => +chart.dataset[k]);
    const cursor = chart.querySelector(".cursor");
    const read = (event) => {
      const box = chart.getBoundingClientRect();
      const across = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
      const x = low + ((across - left) / (right - left)) * (high - low);
      const far = (row) => Math.abs(row.dataset.x - x);
      const row = rows.reduce((best, other) => (far(other) < far(best) ? other : best));
      const at = left + ((row.dataset.x - low) / (high - low)) * (right - left);
      cursor.setAttribute("x1", at);
      cursor.setAttribute("x2", at);
      cursor.style.visibility = "visible";
      show([...row.cells].map((cell) => cell.textContent));
    };
    chart.addEventListener("pointermove", read);
    chart.addEventListener("pointerdown", read);
    chart.addEventListener("pointerleave", () => {
      cursor.style.visibility = "hidden";
      show(ends);
    });
  }
}
// Of points, the one nearest to the pointer, or with the focus, is told in words
for (const chart of document.querySelectorAll(".chart.points")) {
  const place = chart.closest("figure").querySelector(".at");
  const before = place.textContent;
  const points = [...chart.querySelectorAll(".point")];
  const tell = (told) => {
    points.forEach((point) => point.classList.toggle("told", point === told));
    place.textContent = told ? told.querySelector("title").textContent : before;
  };
  const far = (point, event) => Math.min(...[...point.querySelectorAll(".mark")].map((mark) => {
    const box = mark.getBoundingClientRect();
    const middle = [box.left + box.width / 2, box.top + box.height / 2];
    return Math.hypot(event.clientX - middle[0], event.clientY - middle[1]);
  }));
  const read = (event) => {
    const away = points.map((point) => far(point, event));
    tell(points[away.indexOf(Math.min(...away))]);
  };
  chart.addEventListener("pointermove", read);
  chart.addEventListener("pointerdown", read);
  chart.addEventListener("pointerleave", () => tell(null));
  chart.addEventListener("focusin", (event) => tell(event.target.closest(".point")));
  chart.addEventListener("focusout", () => tell(null));
}
