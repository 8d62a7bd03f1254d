// The version of the dashboards, and its changes in one line, for people who look at pages that were imported
// long ago. Raise it with every visible change.
{
  version: 5,
  line: 'The page of a namespace shows jobs that hang; unused GPU-hours and their cost by holder, user and account; links, fabric and switches; lines of charts have different colors, and legends no old values.',
}
