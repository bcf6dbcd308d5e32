import { assert, suite } from "#test/support/suite.js";
import { describeCounts, readsOf, subtract, sumCounts, totalOf } from "./request-counts.js";
import { samplesOf } from "./server-metrics.js";

const METRICS = `# HELP apiserver_request_total Counter of apiserver requests
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",group="apps",resource="deployments",verb="APPLY"} 12
apiserver_request_total{code="201",group="apps",resource="deployments",verb="APPLY"} 3
apiserver_request_total{code="200",group="",resource="configmaps",subresource="",verb="LIST"} 1e+02
apiserver_request_total_other{code="200"} 7
`;

suite("request counts", (test) => {
  test("parse the samples of a metric with their labels", () => {
    const samples = samplesOf(METRICS, "apiserver_request_total");
    assert.equal(
      samples.map(({ labels, value }) => [labels["verb"], labels["resource"], value]),
      [
        ["APPLY", "deployments", 12],
        ["APPLY", "deployments", 3],
        ["LIST", "configmaps", 100],
      ],
    );
  });

  test("sum up by verb", () => {
    const counts = sumCounts(
      samplesOf(METRICS, "apiserver_request_total").map(({ labels, value }) => [labels["verb"] ?? "", value]),
    );
    assert.equal(
      [...counts],
      [
        ["APPLY", 15],
        ["LIST", 100],
      ],
    );
    assert.is(totalOf(counts), 115);
    assert.is(readsOf(counts), 100);
  });

  test("omit verbs without requests from a difference", () => {
    const before = sumCounts([
      ["APPLY", 2],
      ["PATCH", 1],
    ]);
    const counts = sumCounts([
      ["APPLY", 5],
      ["PATCH", 1],
      ["WATCH", 4],
    ]);
    assert.is(describeCounts(subtract(counts, before)), "APPLY 3, WATCH 4");
    assert.is(describeCounts(subtract(counts, counts)), "none");
  });
});
