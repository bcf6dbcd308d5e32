import { hasErrors } from "#generator/diagnostic.js";
import { readCrds } from "#generator/read/crd/read-crds.js";
import { apiRequest } from "../../support/api/api-request.js";
import { borrowControlPlane } from "../../support/machine/borrow-control-plane.js";
import { crdsWithKeywords, crdsWithStructures } from "../../support/kinds/hostile-crds.js";
import { assert, suite } from "../../support/suite.js";

const PATH = "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All&fieldValidation=Strict";

/** What we refuse although an API server takes it: it ignores such items. */
const STRICTER = /^items: .* of a field of type (?:string|integer|object)$/;

suite("CRD validation", (test) => {
  test(
    "accepts and rejects the same CRDs as kube-apiserver",
    async () => {
      await using server = await borrowControlPlane();
      const wrong: string[] = [];
      for (const { name, text } of [...crdsWithKeywords(), ...crdsWithStructures()]) {
        const answer = await apiRequest(server, PATH, { body: JSON.parse(text) as object });
        const { crds } = readCrds({ file: "crd.json", text });
        const isAccepted = crds.length > 0 && !crds.some((crd) => hasErrors(crd.findProblems()));
        if ((answer.status === 201) === isAccepted || (!isAccepted && STRICTER.test(name))) continue;
        wrong.push(
          `${name}: ${isAccepted ? "accepted" : "refused"}, the API server says ${JSON.stringify(answer.body)}`,
        );
      }
      assert.equal(wrong, []);
    },
    { timeoutMs: 240_000 },
  );
});
