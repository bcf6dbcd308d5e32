// node test/dist/control-plane/record/record-columns.js writes apiserver/data/kubernetes-1.36-columns.json: what a real API server says of the columns of
// its tables. Each text is there once; the columns of a kind have the numbers of theirs.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiRequestOrThrow } from "../../support/api/api-request.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { repositoryRoot } from "../../support/repository.js";

const OUTPUT = join(repositoryRoot, "apiserver/data/kubernetes-1.36-columns.json");

interface DiscoveryList {
  readonly items: readonly {
    readonly metadata: { readonly name?: string };
    readonly versions: readonly {
      readonly version: string;
      readonly resources: readonly {
        readonly resource: string;
        readonly responseKind: { readonly kind: string };
        readonly verbs: readonly string[];
      }[];
    }[];
  }[];
}

interface Table {
  readonly columnDefinitions: readonly { readonly description: string }[];
}

await using server = await startControlPlane();
const read = async <T>(path: string, as: string) =>
  (await apiRequestOrThrow(server, `GET ${path}`, { headers: { accept: `application/json;${as}` } })) as unknown as T;
const texts: string[] = [];
const numberOf = (text: string) => (texts.includes(text) ? texts.indexOf(text) : texts.push(text) - 1);
const kinds: Record<string, number[]> = {};
for (const root of ["/api", "/apis"]) {
  const { items } = await read<DiscoveryList>(root, "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  for (const { metadata, versions } of items)
    for (const { version, resources } of versions)
      for (const { resource, responseKind } of resources.filter(({ verbs }) => verbs.includes("list"))) {
        const group = metadata.name ?? "";
        const path = [root, group, version, resource].filter((part) => part !== "").join("/");
        const { columnDefinitions } = await read<Table>(path, "as=Table;v=v1;g=meta.k8s.io");
        kinds[[responseKind.kind, group].filter((part) => part !== "").join(".")] ??= columnDefinitions.map(
          ({ description }) => numberOf(description),
        );
      }
}
const linesOf = (values: readonly unknown[]) => values.map((value) => JSON.stringify(value)).join(",\n");
const linesOfKinds = Object.entries(kinds)
  .sort(([one], [other]) => (one < other ? -1 : 1))
  .map(([kind, numbers]) => `${JSON.stringify(kind)}: ${JSON.stringify(numbers)}`);
writeFileSync(OUTPUT, `{\n"texts": [\n${linesOf(texts)}\n],\n"kinds": {\n${linesOfKinds.join(",\n")}\n}\n}\n`);
console.log(`${texts.length} texts of the columns of ${linesOfKinds.length} kinds written to ${OUTPUT}`);
