// node test/dist/control-plane/record/record-roles.js writes apiserver/data/kubernetes-1.36-roles.json: the roles that a real API server has from its
// start and that users and clients meet, with their bindings; those of its own controllers are left out.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiRequestOrThrow, type ApiObject } from "../../support/api/api-request.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { waitFor } from "#apiserver/wait-for.js";
import { repositoryRoot } from "../../support/repository.js";

const OUTPUT = join(repositoryRoot, "apiserver/data/kubernetes-1.36-roles.json");
const NAMES = [
  ...["cluster-admin", "admin", "edit", "view", "system:monitoring", "system:auth-delegator"],
  ...["system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view"],
  ...["system:basic-user", "system:discovery", "system:public-info-viewer", "system:service-account-issuer-discovery"],
];

await using server = await startControlPlane();
const read = async (plural: string): Promise<object[]> => {
  const path = `GET /apis/rbac.authorization.k8s.io/v1/${plural}`;
  const isThere = async () =>
    (await apiRequestOrThrow(server, path)).items?.some(({ metadata }) => metadata.name === "view");
  if (plural === "clusterroles") await waitFor("the roles of the server", isThere);
  const { items = [] } = await apiRequestOrThrow(server, path);
  return items.filter(({ metadata }) => NAMES.includes(metadata.name)).map(plain);
};
const roles = { clusterroles: await read("clusterroles"), clusterrolebindings: await read("clusterrolebindings") };
const lines = Object.entries(roles).map(
  ([plural, objects]) =>
    `${JSON.stringify(plural)}: [\n${objects.map((object) => JSON.stringify(object)).join(",\n")}\n]`,
);
writeFileSync(OUTPUT, `{\n${lines.join(",\n")}\n}\n`);
console.log(`${roles.clusterroles.length} roles and ${roles.clusterrolebindings.length} bindings written to ${OUTPUT}`);

function plain(object: ApiObject): object {
  const { name, labels, annotations } = object.metadata;
  return { ...object, metadata: { name, labels, annotations } };
}
