// Inputs of many CRDs, made from those that somebody has collected.
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";

interface Crd {
  readonly metadata: { name: string };
  readonly spec: {
    group: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly scope: string;
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly storage?: boolean;
      readonly schema?: unknown;
    }[];
  };
}

/** Reads the CRDs below a folder; those that a parser of YAML 1.2 or an API server refuses are left out, and of two of one kind the first. */
export async function readCorpus(folder: string): Promise<readonly Crd[]> {
  if (!existsSync(folder)) return [];
  const files = (await readdir(folder, { recursive: true })).filter((file) => file.endsWith(".yaml")).sort();
  const crds = await Promise.all(files.map(async (file) => parseOrSkip(await readFile(join(folder, file), "utf8"))));
  const kinds = new Map(crds.flat().map((crd) => [`${crd.spec.names.kind}.${crd.spec.group}`, crd]));
  return [...kinds.values()];
}

function parseOrSkip(text: string): readonly Crd[] {
  try {
    const value = parse(text, { maxAliasCount: -1 }) as Crd & { kind?: string };
    const isDefinition = value.kind === "CustomResourceDefinition" && /^(Namespaced|Cluster)$/.test(value.spec.scope);
    return isDefinition ? [value] : [];
  } catch {
    return [];
  }
}

/** Writes all CRDs so many times into one file, each time in other groups, and tells how many these are. */
export async function writeManyCrds(crds: readonly Crd[], times: number, file: string): Promise<number> {
  const copies = Array.from({ length: times }, (_, copy) =>
    crds.map((crd) => inGroup(crd, `c${copy}.${crd.spec.group}`)),
  );
  const documents = copies.flat().map((crd) => JSON.stringify(crd, undefined, 1));
  await writeFile(file, documents.join("\n---\n"));
  return documents.length;
}

/** Returns the kind of a CRD in its stored version, or the first one that is served. */
function kindOf({ spec: { group, names, versions } }: Crd): string {
  const served = versions.filter((version) => version.served);
  const { name } = served.find(({ storage }) => storage) ?? served[0]!;
  return `${group}/${name}/${names.kind}`;
}

function inGroup(crd: Crd, group: string): Crd {
  const metadata = { ...crd.metadata, name: `${crd.spec.names.plural}.${group}` };
  return { ...crd, metadata, spec: { ...crd.spec, group } };
}

/** A project with a controller for each of so many CRDs. */
export interface LargeProject {
  readonly folder: string;
  /** A CRD of which a description can be changed. */
  readonly changed: string;
}

/** Writes a project with as many controllers as there are CRDs, one of which has a condition that is type-checked. */
export async function writeProject(crds: readonly Crd[], folder: string): Promise<LargeProject> {
  await mkdir(join(folder, "crds"), { recursive: true });
  await writeFile(join(folder, "package.json"), '{ "name": "large", "private": true, "type": "module" }\n');
  const specs = await Promise.all(
    crds.map(async (crd, index) => {
      const file = `crds/crd-${index}.json`;
      await writeFile(join(folder, file), JSON.stringify(crd, undefined, 1));
      const when = index === 0 ? ', reconcilePrecondition: { when: "primary.metadata.name.length > 3" }' : "";
      return [
        "apiVersion: gen-operator.dev/v1alpha1",
        "kind: Workflow",
        `metadata: { name: controller-${index} }`,
        `spec: { primary: ${kindOf(crd)}, dependents: { configMap: { resource: v1/ConfigMap${when} } } }`,
      ].join("\n");
    }),
  );
  await writeFile(join(folder, "workflow.yaml"), `${specs.join("\n---\n")}\n`);
  // Not the one with the condition.
  const described = crds.findIndex((crd, index) => index > 0 && JSON.stringify(crd).includes('"description"'));
  return { folder, changed: join(folder, `crds/crd-${described}.json`) };
}

/** Returns what files with an ending have below a folder, in MB. */
export async function megabytesOf(folder: string, ending: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(ending));
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(file.parentPath, file.name))).size));
  return sizes.reduce((sum, size) => sum + size, 0) / 1e6;
}
