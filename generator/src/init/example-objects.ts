import { resolve } from "node:path";
import { stringify } from "yaml";
import { buildModel } from "../check/build-model.js";
import { hasErrors } from "../diagnostic.js";
import { kebabCase } from "../emit/names.js";
import type { OutputFile } from "../emit/output-file.js";
import { requiredFieldsOf } from "../emit/stubs.js";
import type { ProjectModel, ResourceModel } from "../model/project-model.js";
import { readProject } from "../read/read-project.js";
import { type WriteReport, writeFiles } from "../write/write-files.js";

/** Writes an example object of each primary into a new project. In an existing project, only reports which of them exist. */
export async function writeExampleObjects(
  project: string,
  { isNew }: { readonly isNew: boolean },
): Promise<Pick<WriteReport, "created" | "kept">> {
  const root = resolve(project);
  const input = await readProject(root);
  if (hasErrors(input.diagnostics)) return NOTHING;
  const { model } = await buildModel(input);
  if (model === undefined) return NOTHING;
  const { created, kept } = await writeFiles(root, renderExampleObjects(model), { check: false, dryRun: !isNew });
  return { created: isNew ? created : [], kept };
}

const NOTHING = { created: [], kept: [] };

/** Renders an example object of each custom primary for `npm run dev`. Kinds without a minimal object are skipped. */
function renderExampleObjects({ controllers }: ProjectModel): OutputFile[] {
  const primaries = [...new Set(controllers.map(({ primary }) => primary))].filter(({ isCustom }) => isCustom);
  return primaries.flatMap((primary): OutputFile[] => {
    const fields = requiredFieldsOf(primary);
    if (fields === undefined) return [];
    const object = {
      apiVersion: `${primary.group}/${primary.version}`,
      kind: primary.kind,
      ...metadataOf(primary),
      ...fields,
    };
    const path = `examples/${kebabCase(primary.kind)}.${primary.group}.yaml`;
    return [{ path, owner: "user", content: `${COMMENT}\n${stringify(object, { lineWidth: 0 })}` }];
  });
}

const COMMENT = "# npm run dev applies the objects in this folder.";

function metadataOf({ scope }: ResourceModel): object {
  return { metadata: { name: "example", ...(scope === "Namespaced" ? { namespace: "default" } : {}) } };
}
