// What the functions of Kubernetes' own libraries take and return, written as those of the standard ones.

const KUBERNETES_LISTS = `
indexOf,lastIndexOf   list(A).(A) -> int | string.(string) -> int | string.(string, int) -> int
isSorted              list($compared).() -> bool
max,min               list($compared).() -> $compared
sum                   list($summed).() -> $summed
`;

const KUBERNETES_STRINGS = `
find                  string.(string) -> string
findAll               string.(string) -> list(string) | string.(string, int) -> list(string)
isURL                 (string) -> bool
url                   (string) -> kubernetes.URL
getEscapedPath,getHost,getHostname,getPort,getScheme  kubernetes.URL.() -> string
getQuery              kubernetes.URL.() -> map(string, list(string))
format.byte,format.date,format.datetime,format.labelValue,format.qualifiedName,format.uri,format.uuid  () -> kubernetes.NamedFormat
format.dns1035Label,format.dns1035LabelPrefix,format.dns1123Label,format.dns1123LabelPrefix            () -> kubernetes.NamedFormat
format.dns1123Subdomain,format.dns1123SubdomainPrefix  () -> kubernetes.NamedFormat
format.named          (string) -> optional(kubernetes.NamedFormat)
validate              kubernetes.NamedFormat.(string) -> optional(list(string))
`;

const NETWORKS = `
cidr                  (string) -> net.CIDR
containsCIDR          net.CIDR.(string) -> bool | net.CIDR.(net.CIDR) -> bool
containsIP            net.CIDR.(string) -> bool | net.CIDR.(net.IP) -> bool
family                net.IP.() -> int
ip                    (string) -> net.IP | net.CIDR.() -> net.IP
ip.isCanonical,isCIDR,isIP  (string) -> bool
isGlobalUnicast,isLinkLocalMulticast,isLinkLocalUnicast,isLoopback,isUnspecified  net.IP.() -> bool
masked                net.CIDR.() -> net.CIDR
prefixLength          net.CIDR.() -> int
`;

const NUMBERS = `
quantity              (string) -> kubernetes.Quantity
isQuantity            (string) -> bool
add,sub               kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity | kubernetes.Quantity.(int) -> kubernetes.Quantity
asApproximateFloat    kubernetes.Quantity.() -> double
asInteger             kubernetes.Quantity.() -> int
isInteger             kubernetes.Quantity.() -> bool
sign                  (kubernetes.Quantity) -> int
compareTo             kubernetes.Quantity.(kubernetes.Quantity) -> int | kubernetes.Semver.(kubernetes.Semver) -> int
isGreaterThan,isLessThan  kubernetes.Quantity.(kubernetes.Quantity) -> bool | kubernetes.Semver.(kubernetes.Semver) -> bool
semver                (string) -> kubernetes.Semver | (string, bool) -> kubernetes.Semver
isSemver              (string) -> bool | (string, bool) -> bool
major,minor,patch     kubernetes.Semver.() -> int
`;

const AUTHORIZATION = `
group                 kubernetes.authorization.Authorizer.(string) -> kubernetes.authorization.GroupCheck
path                  kubernetes.authorization.Authorizer.(string) -> kubernetes.authorization.PathCheck
serviceAccount        kubernetes.authorization.Authorizer.(string, string) -> kubernetes.authorization.Authorizer
resource              kubernetes.authorization.GroupCheck.(string) -> kubernetes.authorization.ResourceCheck
fieldSelector,labelSelector,name,namespace,subresource  kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.ResourceCheck
check                 kubernetes.authorization.PathCheck.(string) -> kubernetes.authorization.Decision | kubernetes.authorization.ResourceCheck.(string) -> kubernetes.authorization.Decision
allowed,errored       kubernetes.authorization.Decision.() -> bool
error,reason          kubernetes.authorization.Decision.() -> string
`;

/** The declarations of the functions of Kubernetes. */
export const KUBERNETES_FUNCTIONS = KUBERNETES_LISTS + KUBERNETES_STRINGS + NETWORKS + NUMBERS + AUTHORIZATION;

/** The declarations of what mutating policies have besides. */
export const PATCH_FUNCTIONS = `
jsonpatch.escapeKey   (string) -> string
`;
