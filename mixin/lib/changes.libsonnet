// The version of the dashboards, and its changes in one line, for people who look at pages that were imported
// long ago. Raise it with every visible change.
{
  version: 6,
  line: 'One column for the job of an alert; the page of a silent host says since when and by which proxy; a source without GPUs is red; users, accounts and proxies are links; what is not known is not green.',
}
