import { readBuiltinKinds } from "#generator/read/kinds.js";
import { readCrds } from "#generator/read/crd/read-crds.js";
import { buildModel } from "#generator/check/build-model.js";
import { buildRuntimeSchema } from "#generator/emit/resource/runtime-schema.js";
import type { ResourceDefinition } from "@gen-operator/runtime/codegen";

/** Returns the resource definition of the generated code for a CRD. */
export async function definitionOf(text: string): Promise<ResourceDefinition> {
  const { crds } = readCrds({ file: "crd.json", text });
  const { model } = await buildModel({ crds, workflows: [], builtin: await readBuiltinKinds() });
  const [resource] = model?.resources ?? [];
  if (resource === undefined) throw new Error(`the CRD is refused: ${text}`);
  const { group, version, kind, plural, scope, hasStatusSubresource, scale } = resource;
  return {
    ...{ group, version, kind, plural, scope, hasStatusSubresource, isCustom: true },
    ...(scale === undefined ? {} : { scale }),
    apiVersion: `${group}/${version}`,
    schema: buildRuntimeSchema(resource),
  } as ResourceDefinition;
}
