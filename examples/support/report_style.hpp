// How a report looks: plain CSS, no fonts to fetch, colours for light and dark.
#pragma once

#include <string_view>

namespace examples::detail {

// The eight line colours stay apart for colour-blind readers (after Okabe and Ito), darker on paper and lighter on black.
inline constexpr std::string_view report_style = R"css(
:root {
  --paper: #fbfbf9; --card: #ffffff; --ink: #1d2126; --soft: #5d6670; --rule: #dcdfe2; --mark: #8a4b08;
  --c0: #0b62a8; --c1: #c8500a; --c2: #00805a; --c3: #a83f86; --c4: #8a6d00; --c5: #2793c4; --c6: #b3261e; --c7: #5b5f66;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171a; --card: #1b1f23; --ink: #e4e7ea; --soft: #9aa4ad; --rule: #31373d; --mark: #e0a458;
    --c0: #6cb2f0; --c1: #ff9a57; --c2: #4fc79b; --c3: #e391c8; --c4: #e3c558; --c5: #9ad9f7; --c6: #ff8a80; --c7: #b4bac1;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
main { max-width: 70rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 2rem; line-height: 1.2; font-weight: 650; letter-spacing: -0.01em; margin: 0; }
h2 { font-size: 1.3rem; font-weight: 650; margin: 3rem 0 0.5rem; }
p { margin: 0.5rem 0 1rem; max-width: 44rem; }
.subtitle { color: var(--soft); font-size: 1.05rem; margin-bottom: 0; }
figure { margin: 1rem 0; }
figcaption { font-weight: 600; margin-bottom: 0.25rem; }
.row { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; margin: 1rem 0; }
.row > figure { margin: 0; }
.chart, .sample { background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 0.9rem 1rem; }
.chart svg { display: block; width: 100%; height: auto; margin-top: 0.4rem; }
.chart.wide svg { min-width: 42rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0.1rem 1.1rem; padding: 0; margin: 0; font-size: 0.85rem; }
.swatch { display: inline-block; width: 1.3rem; border-top: 2.5px solid currentColor; margin-right: 0.4rem; vertical-align: 0.25em; }
.swatch.faint { opacity: 0.4; border-top-width: 1.5px; }
.swatch.dashed { border-top-style: dashed; }
.note { font-size: 0.85rem; color: var(--soft); margin: 0.5rem 0 0; }
.warning { color: var(--mark); }
.legend li { color: var(--ink); }
text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; fill: var(--soft); }
text.tick { font-variant-numeric: tabular-nums; }
text.middle { text-anchor: middle; }
text.end { text-anchor: end; }
.grid { stroke: var(--rule); stroke-width: 1; fill: none; }
.axis { stroke: var(--soft); stroke-width: 1; fill: none; }
.line { stroke: currentColor; stroke-width: 2; fill: none; stroke-linejoin: round; stroke-linecap: round; }
.line.faint { stroke-width: 1; opacity: 0.35; }
.line.dashed { stroke-dasharray: 6 4; }
.dot { fill: currentColor; stroke: var(--card); stroke-width: 1; }
.hit { fill: transparent; }
.hit:hover { fill: currentColor; fill-opacity: 0.25; }
.bar { fill: currentColor; fill-opacity: 0.85; }
.bar:hover { fill-opacity: 1; }
.cell { fill: currentColor; }
.cell:hover { stroke: var(--ink); stroke-width: 1.5; }
.frame { fill: none; stroke: var(--rule); stroke-width: 1; }
.s0 { color: var(--c0); } .s1 { color: var(--c1); } .s2 { color: var(--c2); } .s3 { color: var(--c3); }
.s4 { color: var(--c4); } .s5 { color: var(--c5); } .s6 { color: var(--c6); } .s7 { color: var(--c7); }
.s0 .swatch { border-color: var(--c0); } .s1 .swatch { border-color: var(--c1); } .s2 .swatch { border-color: var(--c2); }
.s3 .swatch { border-color: var(--c3); } .s4 .swatch { border-color: var(--c4); } .s5 .swatch { border-color: var(--c5); }
.s6 .swatch { border-color: var(--c6); } .s7 .swatch { border-color: var(--c7); }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(11rem, 1fr)); gap: 1rem; margin: 1.25rem 0; }
.figures div { border-top: 3px solid var(--c0); padding-top: 0.5rem; display: flex; flex-direction: column-reverse; justify-content: flex-end; }
.figures dd { margin: 0; font-size: 1.7rem; line-height: 1.2; font-weight: 650; font-variant-numeric: tabular-nums; }
.figures dt { color: var(--soft); font-size: 0.9rem; line-height: 1.35; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.95rem; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 1.5px solid var(--soft); }
th, td { padding: 0.35rem 1.4rem 0.35rem 0; vertical-align: baseline; }
td { border-bottom: 1px solid var(--rule); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.sample blockquote {
  margin: 0.25rem 0 0; white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate;
  font: 1.05rem/1.6 Georgia, "Iowan Old Style", "Noto Serif", "DejaVu Serif", serif;
}
.sample b { font-weight: inherit; color: var(--mark); }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--rule); color: var(--soft); font-size: 0.85rem; }
@media print { body { background: none; } .chart, .sample { break-inside: avoid; } }
)css";

}  // namespace examples::detail
