// node test/dist/control-plane/record/record-roles.js writes apiserver/data/kubernetes-1.36-roles.json: the roles that a real API server has from its
// start, with their bindings.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiRequestOrThrow, type ApiObject } from "../../support/api/api-request.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { waitFor } from "#apiserver/wait-for.js";
import { repositoryRoot } from "../../support/repository.js";

const OUTPUT = join(repositoryRoot, "apiserver/data/kubernetes-1.36-roles.json");
const PLURALS = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];
// The last one that a server makes.
const LAST = "system:controller:token-cleaner";

await using server = await startControlPlane();
const read = async (plural: string): Promise<ApiObject[]> => {
  const { items = [] } = await apiRequestOrThrow(server, `GET /apis/rbac.authorization.k8s.io/v1/${plural}`);
  return items;
};
await waitFor("the roles of the server", async () =>
  (await read("rolebindings")).some(({ metadata }) => metadata.name === LAST),
);
const lines: string[] = [];
let count = 0;
for (const plural of PLURALS) {
  const objects = (await read(plural)).map(plain);
  count += objects.length;
  lines.push(`${JSON.stringify(plural)}: [\n${objects.map((object) => JSON.stringify(object)).join(",\n")}\n]`);
}
writeFileSync(OUTPUT, `{\n${lines.join(",\n")}\n}\n`);
console.log(`${count} roles and bindings written to ${OUTPUT}`);

function plain(object: ApiObject): object {
  const { name, namespace, labels, annotations, managedFields = [] } = object.metadata;
  // The time is that of the server's start.
  const managers = managedFields.map((entry) => ({ ...entry, time: undefined }));
  return { ...object, metadata: { name, namespace, labels, annotations, managedFields: managers } };
}
