// What the rules of definitions may cost; the same laws on the embedded server and, with TEST_API_SERVER=real, on kube-apiserver, from which
// `GOLDEN_UPDATE=1 TEST_API_SERVER=real` records the fixture.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { apiRequest } from "../../support/api/api-request.js";
import { isRealApiServer, startTestApiServer } from "../../support/api/api-server.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, shared, suite } from "../../support/suite.js";

const FILE = join(repositoryRoot, "fixtures/cel/rule-costs.json");
const PATH = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
const ADVICE =
  " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";
const server = shared(() => startTestApiServer());

interface Costs {
  /** What the rules are about: values of each type, with and without bounds. */
  readonly properties: object;
  readonly rules: readonly string[];
  /** Values with rules in lists and maps. */
  readonly places: readonly object[];
  /** What is said of the rules if an object has so many of the values; `places` for those. */
  said: { [copies: string]: string[] };
}

const withRules = ({ properties, rules }: Costs) => ({
  type: "object",
  properties,
  "x-kubernetes-validations": rules.map((rule) => ({ rule })),
});

const copied = (costs: Costs, maxItems: number) => ({
  type: "object",
  properties: { list: { type: "array", maxItems, items: withRules(costs) } },
});

const placed = ({ places }: Costs) => ({
  type: "object",
  properties: Object.fromEntries(places.map((place, index) => [`p${index}`, place])),
});

async function refusalsOf(spec: object): Promise<string[]> {
  const schema = { openAPIV3Schema: { type: "object", properties: { spec } } };
  const body = {
    metadata: { name: "costs.example.com" },
    spec: {
      group: "example.com",
      scope: "Namespaced",
      names: { plural: "costs", kind: "Cost" },
      versions: [{ name: "v1", served: true, storage: true, schema }],
    },
  };
  const answer = await apiRequest<{ details?: { causes?: { field: string; message: string }[] } }>(
    await server(),
    PATH,
    { body },
  );
  const causes = answer.body.details?.causes ?? [];
  return causes.map(({ field, message }) => `${field} ${message.replace(ADVICE, "")}`).sort();
}

suite("CEL cost estimation", (test) => {
  const read = async () => JSON.parse(await readFile(FILE, "utf8")) as Costs;

  for (const copies of ["1", "1000", "100000", "10000000", "places"])
    test(`rejects a CRD with the same cost factors as kube-apiserver: ${copies}`, async () => {
      const costs = await read();
      const said = await refusalsOf(copies === "places" ? placed(costs) : copied(costs, Number(copies)));
      if (process.env["GOLDEN_UPDATE"] === "1" && isRealApiServer) {
        const updated = { ...costs, said: { ...costs.said, [copies]: said } };
        await writeFile(FILE, `${JSON.stringify(updated, undefined, 1)}\n`);
      }
      // A run that changed what it compares with proves nothing, so it fails all the same.
      assert.equal(said, costs.said[copies]);
    });
});
