import { startTestApiServer } from "../../support/api/api-server.js";
import { declareCertificateLaws } from "../../support/laws/certificates.js";
import { declareClusterObjectLaws } from "../../support/laws/cluster-objects.js";
import { declareClusterRoleLaws } from "../../support/laws/cluster-roles.js";
import { declareEventLaws } from "../../support/laws/events.js";
import { declareGarbageCollectionLaws } from "../../support/laws/garbage-collection.js";
import { declareNamespaceLaws } from "../../support/laws/namespaces.js";
import { declarePolicyTypeLaws } from "../../support/laws/policy-types.js";
import { declareServiceAccountLaws } from "../../support/laws/service-accounts.js";
import { declareWorkloadObjectLaws } from "../../support/laws/workload-objects.js";
import { declareWorkloadLaws } from "../../support/laws/workloads.js";
import { shared, suite } from "../../support/suite.js";

suite("controllers of a cluster", (test) => {
  const cluster = shared(() => startTestApiServer({ simulate: true, tls: true }));
  declareGarbageCollectionLaws(test, cluster);
  declareNamespaceLaws(test.thorough, cluster);
  declareWorkloadLaws(test.thorough, cluster);
  declareServiceAccountLaws(test, cluster);
  declareEventLaws(test.thorough, cluster);
  declareCertificateLaws(test, cluster);
  declareClusterRoleLaws(test, cluster);
  declarePolicyTypeLaws(test, cluster);
  declareWorkloadObjectLaws(test.thorough, cluster);
  declareClusterObjectLaws(test.thorough, cluster);
});
