export declare function renderErrors(catalogue: Record<string, { status: number; retryable: boolean; text: string }>): string;
