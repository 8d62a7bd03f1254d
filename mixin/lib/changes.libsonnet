// The version of the dashboards, and its changes in one line, for people who look at pages that were imported
// long ago. Raise it with every visible change.
{
  version: 4,
  line: 'Row links keep the cluster of the row; alerts of jobs show on the pages of their hosts; the pickers of models and namespaces apply to all panels below them, except for those that say they show all models.',
}
