import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './data/client.ts';
import { readOrganisation } from './data/organisation.ts';
import { meQuery } from './data/queries.ts';
import { router } from './router.tsx';
import './theme/app.css';
import './theme/density.ts';
import './theme/theme.ts';

readOrganisation();
// Every page needs this query, so it starts before the first page loads.
void queryClient.prefetchQuery(meQuery);

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
