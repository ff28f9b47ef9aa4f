"use strict";
(function () {
  const payload = JSON.parse(document.getElementById("payload").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const narrow = window.matchMedia("(max-width: 860px)");
  const PAPER = 660; // pixels between the margins of an A4 page
  let printing = location.hash === "#print"; // for a browser that prints and goes

  function themed(value, map) {
    if (Array.isArray(value)) return value.map((item) => themed(item, map));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, themed(item, map)]));
    }
    return typeof value === "string" && Object.hasOwn(map, value) ? map[value] : value;
  }

  function figure(panel) {
    const isDark = dark.matches && !printing;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => (printing ? { "--ink": "#1b1f24", "--grid": "#e7eaee", "--line": "#d8dee4", "--ground": "#ffffff" }[name] : style.getPropertyValue(name).trim());
    const made = themed(panel, isDark ? payload.dark : {});
    const layout = made.layout;
    layout.paper_bgcolor = "rgba(0,0,0,0)";
    layout.plot_bgcolor = "rgba(0,0,0,0)";
    layout.font = { family: "system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, Arial, sans-serif", size: 12, color: colour("--ink") };
    layout.hoverlabel = { bgcolor: colour("--ground"), bordercolor: colour("--ink"), font: { color: colour("--ink") } };
    layout.dragmode = narrow.matches ? false : "zoom";
    for (const name of ["xaxis", "yaxis"]) {
      layout[name].gridcolor = colour("--grid");
      layout[name].linecolor = colour("--line");
    }
    return made;
  }

  function panelsOf(chart) {
    return Array.from(chart.querySelectorAll(".panel"));
  }

  function hidden(chart) {
    return new Set(Array.from(chart.querySelectorAll('[data-group][aria-pressed="false"]'), (b) => b.dataset.group));
  }

  // A chart is drawn when it comes near: forty of them at once would keep the reader waiting.
  const drawn = new Set();

  function draw(chart) {
    drawn.add(chart);
    const name = chart.dataset.chart;
    const off = hidden(chart);
    return Promise.all(panelsOf(chart).map((element, i) => {
      const made = figure(payload.charts[name].panels[i]);
      made.data.forEach((trace) => { if (off.has(trace.legendgroup)) trace.visible = false; });
      if (printing) made.layout.width = chart.classList.contains("wide") || payload.charts[name].panels.length === 1 ? PAPER : PAPER / 2 - 8;
      return Plotly.react(element, made.data, made.layout, { responsive: !printing, displayModeBar: false, displaylogo: false, typesetMath: false });
    })).then(() => { chart.dataset.drawn = "true"; });
  }

  function paintLegends() {
    document.querySelectorAll(".chart").forEach((chart) => {
      const keys = payload.keys[chart.dataset.chart];
      chart.querySelectorAll(".legend line").forEach((line, i) => {
        const colour = keys[i][2];
        line.setAttribute("stroke", dark.matches && !printing ? payload.dark[colour] || colour : colour);
      });
    });
  }

  const charts = Array.from(document.querySelectorAll(".chart"));

  function drawAgain(which) {
    paintLegends();
    return Promise.all(which.map(draw));
  }

  function save(name, type, content) {
    const link = document.createElement("a");
    const url = URL.createObjectURL(new Blob([content], { type: type }));
    link.href = url;
    link.download = name;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }

  async function picture(chart) {
    const name = chart.dataset.chart;
    const keys = payload.keys[name];
    const off = hidden(chart);
    const columns = Math.max(1, getComputedStyle(chart.querySelector(".panels")).gridTemplateColumns.split(" ").length);
    const parts = [];
    let x = 0, y = 34, row = 0, width = 0;
    const panels = panelsOf(chart);
    for (let i = 0; i < panels.length; i += 1) {
      const w = panels[i].clientWidth, h = panels[i].clientHeight;
      const uri = await Plotly.toImage(panels[i], { format: "svg", width: w, height: h });
      const text = decodeURIComponent(uri.slice(uri.indexOf(",") + 1));
      parts.push(text.replace("<svg ", `<svg x="${x}" y="${y}" `));
      row = Math.max(row, h);
      width = Math.max(width, x + w);
      x += w + 16;
      if ((i + 1) % columns === 0 || i + 1 === panels.length) { x = 0; y += row + 12; row = 0; }
    }
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim();
    const words = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
    const svg = [`<text x="4" y="20" font-size="15" font-weight="600">${words(payload.charts[name].title)}</text>`, ...parts];
    let at = 4;
    if (keys.length > 1) {
      for (const [group, label, colour, dash] of keys) {
        if (off.has(group)) continue;
        const wide = 36 + 7 * label.length;
        if (at > 4 && at + wide > width) { at = 4; y += 18; }
        const shown = dark.matches ? payload.dark[colour] || colour : colour;
        svg.push(`<line x1="${at}" x2="${at + 22}" y1="${y + 6}" y2="${y + 6}" stroke="${shown}" stroke-width="3" stroke-dasharray="${dash}"/>`);
        svg.push(`<text x="${at + 28}" y="${y + 10}" font-size="12">${words(label)}</text>`);
        at += wide;
      }
      y += 22;
    }
    const ground = style.getPropertyValue("--ground").trim();
    return {
      width: width, height: y,
      text: `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="${width}" height="${y}" font-family="sans-serif" fill="${ink}">` +
        `<desc>waterjar; root hashes: ${payload.roots.join(" ")}</desc><rect width="100%" height="100%" fill="${ground}"/>${svg.join("")}</svg>`,
    };
  }

  async function savePicture(chart, format) {
    const made = await picture(chart);
    if (format === "svg") { save(`${chart.dataset.chart}.svg`, "image/svg+xml", made.text); return; }
    const image = new Image();
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(made.text);
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = 2 * made.width;
    canvas.height = 2 * made.height;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(`${chart.dataset.chart}.png`, "image/png", blob), "image/png");
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.csv) {
      save(`${button.dataset.csv}.csv`, "text/csv;charset=utf-8", payload.csv[button.dataset.csv]);
    } else if (button.dataset.picture) {
      savePicture(button.closest(".chart"), button.dataset.picture);
    } else if (button.dataset.group) {
      button.setAttribute("aria-pressed", button.getAttribute("aria-pressed") === "true" ? "false" : "true");
      draw(button.closest(".chart"));
    }
  });

  const redraw = () => drawAgain(Array.from(drawn));
  dark.addEventListener("change", redraw);
  narrow.addEventListener("change", redraw);
  // Paper has nothing to press: every chart is drawn, and the declaration of the study is shown.
  function print(on) {
    printing = on;
    document.querySelectorAll(on ? "details.code:not([open])" : "details[data-unfolded]").forEach((one) => {
      one.open = on;
      one.toggleAttribute("data-unfolded", on);
    });
    return drawAgain(charts);
  }
  window.addEventListener("beforeprint", () => print(true));
  window.addEventListener("afterprint", () => print(false));

  const links = new Map(Array.from(document.querySelectorAll("nav a"), (a) => [a.getAttribute("href").slice(1), a]));
  const seen = new IntersectionObserver((entries) => {
    entries.forEach((entry) => {
      if (!entry.isIntersecting) return;
      links.forEach((a) => a.removeAttribute("aria-current"));
      links.get(entry.target.id).setAttribute("aria-current", "true");
    });
  }, { rootMargin: "-10% 0px -75% 0px" });
  document.querySelectorAll("main > section").forEach((section) => seen.observe(section));

  window.addEventListener("load", () => {
    paintLegends();
    const near = new IntersectionObserver((entries) => {
      entries.filter((entry) => entry.isIntersecting && !drawn.has(entry.target)).forEach((entry) => {
        near.unobserve(entry.target);
        draw(entry.target);
      });
    }, { rootMargin: "800px 0px" });
    if (printing) print(true);
    else charts.forEach((chart) => near.observe(chart));
    document.documentElement.dataset.ready = "true";
  });
})();
