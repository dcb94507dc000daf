/** The functions of jstat that we call; the package brings no types. */
declare module 'jstat' {
  const jStat: {
    studentt: { inv(probability: number, degreesOfFreedom: number): number };
    noncentralt: { cdf(x: number, degreesOfFreedom: number, noncentrality: number): number };
    chisquare: { cdf(x: number, degreesOfFreedom: number): number };
    /** The regularised incomplete beta function. */
    ibeta(x: number, a: number, b: number): number;
    /** ln Γ(x). */
    gammaln(x: number): number;
  };
  export default { jStat };
}
