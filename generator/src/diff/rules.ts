import { defineRule } from "../diagnostic.js";

export const BREAKING_CHANGE = defineRule({
  id: "breaking-change",
  severity: "error",
  page: {
    meaning:
      "A change of a CRD or of a spec breaks stored objects, manifests or other programs, or deletes running objects.",
    remedy: "Revert the change, add a version, or plan a migration. `gen-operator diff` lists all changes.",
  },
});

export const BROKEN_LINE = defineRule({
  id: "broken-line",
  severity: "warning",
  page: {
    meaning: "A line of your code compiles with the earlier types, but not with the current ones.",
    remedy: "Adapt the line to the new types.",
  },
});

export const STALE_STUB = defineRule({
  id: "stale-stub",
  severity: "warning",
  page: {
    meaning: "A stub of the earlier state is no longer called.",
    remedy: "Delete the file, or list the dependent under `moved`.",
  },
});

export const UNREADABLE_BASELINE = defineRule({
  id: "unreadable-baseline",
  severity: "error",
  page: {
    meaning: "The state that a project is compared with cannot be read.",
    remedy:
      "Use a commit, a branch, a tag or a folder. In continuous integration, fetch the history: `fetch-depth: 0`.",
  },
});
