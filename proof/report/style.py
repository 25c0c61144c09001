"""The page's style sheet: light and dark by the reader's setting, one column on a phone, and fit for paper."""

from __future__ import annotations

from typing import Final

_LIGHT: Final = (
    "--paper:#fff;--ink:#1b1f24;--soft:#57606a;--line:#d5dae0;--panel:#f5f7f9;--good:#17663a;--bad:#b3261e;--bar:#3f6fb0;"
    "--s-succeeded:#2a8a57;--s-failed:#c0392b;--s-cancelled:#8e6bb0;--s-skipped:#9a7d0a;--s-open:#2f6fd0;--s-summed:#6b7280;"
    "--term0:#b9cdea;--term1:#dbe5f3;--gap:#b3261e;--band:#a0522d;"
)
_DARK: Final = (
    "--paper:#14171b;--ink:#e6e9ee;--soft:#a2acb8;--line:#38404a;--panel:#1d2228;--good:#6bd49b;--bad:#ff8a80;--bar:#7fa9e0;"
    "--s-succeeded:#5cc48d;--s-failed:#ff7f70;--s-cancelled:#c3a3e6;--s-skipped:#e0c14a;--s-open:#7fb0ff;--s-summed:#aab3bf;"
    "--term0:#3a5680;--term1:#2a3d5a;--gap:#ff8a80;--band:#d9a066;"
)
_FAULTS: Final = ("#c2571a", "#7b4fb3", "#0f7b8a", "#a8325e", "#5d7a1f", "#2c5fb3", "#8a6d1d", "#5a6472")
"""A kind's colour, by its number less one, in turn. Dark enough for white letters."""

STYLE: Final = (
    ":root{color-scheme:light dark;" + _LIGHT + "}"
    "@media (prefers-color-scheme:dark){:root{" + _DARK + "}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:76rem;padding:1rem;background:var(--paper);color:var(--ink);"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;overflow-wrap:anywhere}"
    "h1{font-size:1.6rem;line-height:1.25}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}"
    "p.how,.note{color:var(--soft);max-width:46rem}a{color:inherit}"
    ".verdict{padding:.8rem 1rem;border-left:.4rem solid var(--good);background:var(--panel);font-size:1.15rem}"
    ".verdict.broken{border-color:var(--bad)}.verdict strong{color:var(--good)}.verdict.broken strong{color:var(--bad)}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(9rem,1fr));gap:.6rem;padding:0;list-style:none}"
    ".tiles li{background:var(--panel);padding:.6rem .8rem;border:1px solid var(--line);border-radius:.3rem}"
    ".tiles b{display:block;font-size:1.5rem;font-variant-numeric:tabular-nums}.tiles .broken b{color:var(--bad)}"
    ".pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));gap:1.2rem;align-items:start}"
    ".wide{overflow-x:auto;max-width:100%}table{border-collapse:collapse;width:100%;font-size:.9rem}"
    "caption{text-align:left;font-weight:600;padding:.3rem 0}th,td{overflow-wrap:break-word;"
    "padding:.25rem .6rem;border-bottom:1px solid var(--line);"
    "text-align:left;vertical-align:top}.numbers td,.numbers th[scope=col]:not(:first-child){text-align:right;"
    "font-variant-numeric:tabular-nums;white-space:nowrap}tbody th{font-weight:400}"
    "code{font-family:ui-monospace,monospace;font-size:.9em;background:var(--panel);padding:.1em .3em}"
    "svg{display:block;width:100%;height:auto;font:11px system-ui,sans-serif;fill:var(--ink)}"
    "svg.strip{min-width:52rem;margin:.4rem 0;background:var(--panel)}svg.chart{max-width:40rem}"
    "svg text.when{font-size:9px;fill:var(--soft)}svg text.no{font-size:8px}svg text.in{font-size:8px}"
    ".rule{stroke:var(--line);stroke-width:.5;fill:none}.bar,.dot{fill:var(--bar)}.dot{fill-opacity:.6}"
    ".aim{stroke:var(--bad);stroke-width:1.5;fill:none}.band{fill:var(--band);fill-opacity:.13}"
    ".term0{fill:var(--term0)}.term1{fill:var(--term1)}.gap{fill:var(--gap)}.starved{fill:var(--soft);fill-opacity:.35}"
    ".wrong{fill:var(--bad);stroke:var(--paper);stroke-width:1}"
    ".s-succeeded{fill:var(--s-succeeded)}.s-failed{fill:var(--s-failed)}.s-cancelled{fill:var(--s-cancelled)}"
    ".s-skipped{fill:var(--s-skipped)}.s-open{fill:var(--s-open)}.s-summed-up{fill:var(--s-summed)}"
    + "".join(f".f{number}{{fill:{colour}}}" for number, colour in enumerate(_FAULTS))
    + "rect[class^=f]~text.in{fill:#fff}rect[class^=term]~text.in{fill:var(--ink)}"
    ".legend{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;padding:0;list-style:none;font-size:.85rem}"
    ".legend svg{display:inline-block;width:1rem;height:.8rem;vertical-align:-.05rem;margin-right:.3rem}"
    "details{margin:.6rem 0}summary{cursor:pointer}:focus-visible{outline:2px solid var(--bar)}"
    "@media print{:root{color-scheme:light;" + _LIGHT + "}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}"
    "body{max-width:none;padding:0;font-size:10pt}.wide{overflow:visible}svg.strip{min-width:0;break-inside:avoid}"
    "h2,caption{break-after:avoid}tr,.tiles li{break-inside:avoid}details::details-content{content-visibility:visible;"
    "block-size:auto}}"
)
