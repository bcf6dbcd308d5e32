// What the API server says of objects whose schemas have rules in CEL is what `parse` says, and what the embedded one says in the same words.
import fc from "../../support/fast-check.js";
import { parseResource } from "@gen-operator/runtime/cel";
import { SchemaError } from "@gen-operator/runtime/codegen";
import { startApiServer } from "@gen-operator/apiserver";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, apiRequestOrThrow, createAgent } from "../../support/api/api-request.js";
import { borrowControlPlane } from "../../support/machine/borrow-control-plane.js";
import { definitionOf } from "../../support/kinds/definition-of.js";
import { crdJson } from "../../support/kinds/hostile-crds.js";
import { RULE_SPEC, RULES, ruleSpecs } from "../../support/kinds/rule-cases.js";
import { seed } from "../../support/runs.js";
import { assert, suite } from "../../support/suite.js";

const CRDS = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OBJECTS = "POST /apis/example.com/v1/namespaces/default/things?dryRun=All&fieldValidation=Strict";

interface Cause {
  readonly field: string;
  readonly message: string;
}

/** The numbers of the rules that failed; one that could not be evaluated has an "!" behind it. */
function failuresOf(messages: readonly string[]): string {
  const found = messages.map((message) => {
    const [, before, number] = /^(.*?)rule #(\d+)#/s.exec(message) ?? [];
    return number === undefined ? message : `${number}${/rule: $/.test(before ?? "") ? "!" : ""}`;
  });
  return [...new Set(found)].sort().join(" ");
}

/** What an answer says, in no order: kube-apiserver walks through objects at random. */
function causesOf(causes: readonly Cause[]): string {
  return (
    causes
      // Go says at length what is wrong with an address, a URL and the like.
      .map(({ field, message }) => `${field}: ${message.replace(/"object": (?!').* (?=evaluating rule: )/s, "")}`)
      .sort()
      .join("\n            ")
  );
}

function problemsOf(parse: () => unknown): string[] {
  try {
    parse();
    return [];
  } catch (error) {
    if (error instanceof SchemaError) return error.problems.map(({ message }) => message);
    throw error;
  }
}

suite("CEL validation rules", (test) => {
  test(
    "fail for the same objects in parse, the embedded server and kube-apiserver",
    async () => {
      await using server = await borrowControlPlane();
      await using embedded = await startApiServer();
      const [agent, embeddedAgent] = [createAgent(server), createAgent(embedded)];
      const rules = RULES.map((rule, index) => ({ rule, message: `rule #${index}#` }));
      const schema = {
        type: "object",
        properties: { spec: { ...RULE_SPEC, "x-kubernetes-validations": rules } },
      };
      const text = crdJson(schema);
      for (const each of [server, embedded]) await apiRequestOrThrow(each, CRDS, { body: JSON.parse(text) as object });
      const identity = { apiVersion: "example.com/v1", kind: "Thing", metadata: { name: "x", namespace: "default" } };
      await waitFor("the kind is served", async () => {
        const { status } = await apiRequest(server, OBJECTS, { body: identity });
        return status === 201;
      });
      const definition = await definitionOf(text);
      const wrong: string[] = [];
      for (const spec of fc.sample(ruleSpecs, { numRuns: 400, seed })) {
        const object = { ...identity, spec };
        const answer = await apiRequest<{ details?: { causes?: Cause[] } }>(server, OBJECTS, { body: object, agent });
        const said = failuresOf((answer.body.details?.causes ?? []).map(({ message }) => message));
        const ours = failuresOf(problemsOf(() => parseResource(definition, object)));
        const other = await apiRequest<typeof answer.body>(embedded, OBJECTS, { body: object, agent: embeddedAgent });
        const place = `seed ${seed} ${JSON.stringify(spec)}`;
        if (said !== ours) wrong.push(`${place}\n  server: ${answer.status} ${said}\n  parse:  ${ours}`);
        const [here, there] = [other, answer].map((each) => causesOf(each.body.details?.causes ?? []));
        if (here !== there) wrong.push(`${place}\n  server:   ${there}\n  embedded: ${here}`);
      }
      agent.destroy();
      embeddedAgent.destroy();
      assert.is(wrong.join("\n"), "");
    },
    { timeoutMs: 240_000 },
  );
});
