import { WebPage } from "../../../../fixtures/samples/webpage/src/generated/index.js";

export const page = WebPage.create({ metadata: { name: "x", namespace: "x" }, spec: { html: "x" }, status: {} });
