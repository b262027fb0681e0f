// Names the point under the pointer, and brings out one line of a section among the others.
const tip = document.getElementById("tip");
document.addEventListener("pointermove", (event) => {
  const point = event.target.closest("[data-tip]");
  tip.hidden = !point;
  if (!point) return;
  tip.textContent = point.dataset.tip;
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  tip.style.left = `${left}px`;
  tip.style.top = `${event.clientY + 16}px`;
});
for (const section of document.querySelectorAll("section")) {
  const parts = section.querySelectorAll("svg:not(.key), .legend");
  const light = (number) => {
    parts.forEach((part) => part.classList.toggle("dim", number !== undefined));
    section.querySelectorAll("[data-series]").forEach((line) => line.classList.toggle("lit", line.dataset.series === number));
  };
  section.addEventListener("pointerover", (event) => light(event.target.closest("[data-series]")?.dataset.series));
  section.addEventListener("pointerleave", () => light(undefined));
}
