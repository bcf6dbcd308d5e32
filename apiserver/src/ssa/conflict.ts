import { quote } from "../errors/quote.js";
import { applyConflict, type StatusError } from "../errors/status-error.js";
import { compareText } from "../json.js";
import { parseIdentity } from "./managers.js";
import type { OwnerConflict } from "./updater.js";

/** Builds the 409 of an apply that would change fields of other managers. */
export function applyConflictOf(conflicts: readonly OwnerConflict[]): StatusError {
  const sorted = [...conflicts].sort((a, b) => compareText(a.manager, b.manager));
  const groups = sorted.map(({ manager, fields }) => ({ manager: managerText(manager), paths: fields.paths() }));
  const causes = groups.flatMap(({ manager, paths }) =>
    paths.map((field) => ({ reason: "FieldManagerConflict", message: `conflict with ${manager}`, field })),
  );
  const [only] = causes;
  if (causes.length === 1 && only !== undefined) {
    return applyConflict(`Apply failed with 1 conflict: ${only.message}: ${only.field}`, causes);
  }
  const lines = groups.flatMap(({ manager, paths }) => [
    `conflicts with ${manager}:`,
    ...paths.map((path) => `- ${path}`),
  ]);
  return applyConflict(`Apply failed with ${causes.length} conflicts: ${lines.join("\n")}`, causes);
}

function managerText(identity: string): string {
  const { manager, operation, apiVersion, subresource } = parseIdentity(identity);
  const on = subresource === "" ? "" : ` with subresource ${quote(subresource)}`;
  return `${quote(manager)}${on}${operation === "Update" ? ` using ${apiVersion}` : ""}`;
}
