// The version of the dashboards, and what it brought in a line: people look at a page that was imported a year ago. Raise it
// with every change that they can see.
{
  version: 2,
  line: 'A board that is gone is a state on every page; Node has the GPUs of a host side by side; XIDs are in words; marks of alerts and resets in charts.',
}
