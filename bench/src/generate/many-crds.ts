// Creates inputs with many CRDs from a corpus.
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

/** Reads the CRDs below a folder. Skips files that are invalid YAML 1.2 or that the API server rejects, and duplicate kinds. */
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

/** Writes `times` copies of all CRDs to one file, each copy with different groups. Returns the number of CRDs. */
export async function writeManyCrds(crds: readonly Crd[], times: number, file: string): Promise<number> {
  const copies = Array.from({ length: times }, (_, copy) =>
    crds.map((crd) => inGroup(crd, `c${copy}.${crd.spec.group}`)),
  );
  const documents = copies.flat().map((crd) => JSON.stringify(crd, undefined, 1));
  await writeFile(file, documents.join("\n---\n"));
  return documents.length;
}

/** Returns the kind of a CRD in its storage version if that is served, otherwise in its first served version. */
function kindOf({ spec: { group, names, versions } }: Crd): string {
  const served = versions.filter((version) => version.served);
  const { name } = served.find(({ storage }) => storage) ?? served[0]!;
  return `${group}/${name}/${names.kind}`;
}

function inGroup(crd: Crd, group: string): Crd {
  const metadata = { ...crd.metadata, name: `${crd.spec.names.plural}.${group}` };
  return { ...crd, metadata, spec: { ...crd.spec, group } };
}

/** A project with one controller per CRD. */
export interface LargeProject {
  readonly folder: string;
  /** The file of a CRD with descriptions, one of which can be changed. */
  readonly changed: string;
}

/** Writes a project with one controller per CRD. One of the controllers has a condition that is type-checked. */
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
  // Choose a CRD other than that of the controller with the condition.
  const described = crds.findIndex((crd, index) => index > 0 && JSON.stringify(crd).includes('"description"'));
  return { folder, changed: join(folder, `crds/crd-${described}.json`) };
}

/** Returns the total size of the files with an extension below a folder, in MB. */
export async function megabytesOf(folder: string, ending: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(ending));
  const sizes = await Promise.all(files.map(async (file) => (await stat(join(file.parentPath, file.name))).size));
  return sizes.reduce((sum, size) => sum + size, 0) / 1e6;
}
