import { stringify } from "yaml";
import type { ProjectModel, ResourceModel } from "../../model/project-model.js";
import type { OutputFile } from "../files/output-file.js";
import { kebabCase } from "../naming.js";
import { requiredFieldsOf } from "../stubs/dependent-stubs.js";

/** Renders an object of each primary for `npm run dev` to start with; none for a kind whose smallest object is not known. */
export function renderExampleObjects({ controllers }: ProjectModel): OutputFile[] {
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
