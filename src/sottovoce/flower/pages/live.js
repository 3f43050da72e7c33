"use strict";
// What the page shows comes whole, whenever it changed; a browser connects again by itself
const main = document.querySelector("main");
const links = document.querySelector("#links");
const state = document.querySelector("#state");
const said = document.querySelector("#said");
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const hour = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

const inOwnTime = (root) => {
  for (const place of root.querySelectorAll("time")) {
    const when = new Date(place.dateTime);
    if (Number.isNaN(when.getTime())) continue;
    const today = day.format(when) === day.format(new Date());
    place.textContent = today ? hour.format(when) : `${day.format(when)}, ${hour.format(when)}`;
  }
};
const say = (words) => {
  if (said.textContent !== words) said.textContent = words;
};
const mark = (kind, words) => {
  state.dataset.state = kind;
  state.textContent = words;
};
const live = () => mark("live", `Live, looked at ${hour.format(new Date())}`);

// The new state in place of the old, with what the reader had scrolled or was at
const replace = (html) => {
  const boxes = () => [...main.querySelectorAll(".box")];
  const name = (box) => box.getAttribute("aria-label");
  const was = new Map(boxes().map((box) => [name(box), [box.scrollLeft, box.scrollTop]]));
  const at = boxes().find((box) => box === document.activeElement);
  main.innerHTML = html;
  inOwnTime(main);
  for (const box of boxes()) {
    if (was.has(name(box))) [box.scrollLeft, box.scrollTop] = was.get(name(box));
    if (at && name(at) === name(box)) box.focus({ preventScroll: true });
  }
};

const listen = () => {
  const source = new EventSource(state.dataset.events);
  source.addEventListener("shown", (event) => {
    const shown = JSON.parse(event.data);
    replace(shown.main);
    if (links.innerHTML !== shown.links) links.innerHTML = shown.links;
    document.title = shown.title;
    say(shown.said);
    live();
  });
  source.addEventListener("beat", live);
  source.addEventListener("error", () => {
    const words = "Nobody serves this page at the moment; it may be old";
    if (state.dataset.state !== "lost") mark("lost", `${words} (since ${hour.format(new Date())})`);
    say(words);
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  });
};
inOwnTime(document);
listen();
