// Builds a dashboard from rows of panels: positions and numbers them.
local annotations = import 'annotations.libsonnet';
local changes = import 'changes.libsonnet';
local links = import 'links.libsonnet';

local width = 24;

// place positions the panels of a row from left to right, and starts a new line if the next one does not fit.
// Each panel may have `w` and `h`.
local place(panels, top, first) =
  std.foldl(
    function(acc, panel)
      local w = panel.w;
      local h = panel.h;
      local wraps = acc.x + w > width;
      local x = if wraps then 0 else acc.x;
      local y = if wraps then acc.y + acc.tallest else acc.y;
      {
        x: x + w,
        y: y,
        tallest: if wraps then h else std.max(acc.tallest, h),
        id: acc.id + 1,
        out: acc.out + [panel.panel { id: acc.id, gridPos: { x: x, y: y, w: w, h: h } }],
      },
    panels,
    { x: 0, y: top, tallest: 0, id: first, out: [] },
  );

{
  // at sets the size of a panel: w of 24 columns, and h lines.
  at(w, h, panel):: { w: w, h: h, panel: panel },

  // row is a titled group of placed panels.
  row(title, panels):: { title: title, panels: panels },

  // layout turns rows into the panels of a dashboard. The first row has no title bar: it answers the
  // dashboard's question.
  layout(rows)::
    std.foldl(
      function(acc, row)
        local titled = acc.id > 1;
        local bar = if titled then [{
          type: 'row',
          title: row.title,
          collapsed: false,
          panels: [],
          id: acc.id,
          gridPos: { x: 0, y: acc.y, w: width, h: 1 },
        }] else [];
        local placed = place(row.panels, acc.y + std.length(bar), acc.id + std.length(bar));
        { id: placed.id, y: placed.y + placed.tallest, out: acc.out + bar + placed.out },
      rows,
      { id: 1, y: 0, out: [] },
    ).out,

  // new returns a dashboard of _config `c`: file is its key in grafanaDashboardIDs, question is what its top
  // row answers.
  new(c, file, title, question, variables, rows):: {
    local one = std.length([v for v in variables if std.member(['hostname', 'job'], v.name) && !v.multi]) > 0,
    uid: c.grafanaDashboardIDs[file],
    title: c.grafanaKpulse.dashboardNamePrefix + title,
    description: question,
    tags: if one then c.grafanaKpulse.dashboardTags else links.ofMany(c),
    timezone: c.grafanaKpulse.grafanaTimezone,
    refresh: c.grafanaKpulse.refresh,
    time: { from: c.grafanaKpulse.period, to: 'now' },
    timepicker: {},
    schemaVersion: 42,
    version: changes.version,
    editable: false,
    graphTooltip: 1,  // a crosshair shared by all panels
    annotations: { list: annotations.of(c, variables) },
    links: links.ofPage(c),
    templating: { list: variables },
    // A step below that of recorded series would not draw more points.
    panels: [
      if panel.type == 'row' then panel else { interval: c.grafanaKpulse.minimumTimeInterval } + links.ofRows(c, panel)
      for panel in $.layout(rows)
    ],
  },
}
