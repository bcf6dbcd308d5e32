import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createTemporaryFolder, type TemporaryFolder } from "../../../support/temporary-folder.js";

/** Returns the text of a CRD with a schema, which is YAML on one line. */
export function crdText(schema: string, kind = "Thing"): string {
  const singular = kind.toLowerCase();
  return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: ${singular}s.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { kind: ${kind}, plural: ${singular}s, singular: ${singular}, listKind: ${kind}List }
  versions:
    - name: v1
      served: true
      storage: true
      subresources: { status: {} }
      schema:
        openAPIV3Schema: ${schema}
`;
}

/** Returns the text of a workflow whose dependent has a condition. */
export function workflowText(when: string): string {
  return `apiVersion: gen-operator.dev/v1alpha1
kind: Workflow
metadata: { name: thing }
spec:
  primary: example.com/v1/Thing
  dependents:
    settings:
      resource: v1/ConfigMap
      reconcilePrecondition: { when: ${JSON.stringify(when)} }
`;
}

/** A schema with nothing wrong. */
export const PLAIN_SCHEMA =
  "{ type: object, properties: { spec: { type: object, properties: { a: { type: boolean } } }, status: { type: object, properties: { b: { type: boolean } } } } }";

/** Creates a folder with files of these texts. */
export async function createFolderWith(files: { readonly [path: string]: string }): Promise<TemporaryFolder> {
  const folder = await createTemporaryFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder.path, path)), { recursive: true });
    await writeFile(join(folder.path, path), text);
  }
  return folder;
}
