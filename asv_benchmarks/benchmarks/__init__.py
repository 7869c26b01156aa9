"""Speed, memory, start-up and accuracy of blowfish_fast, for asv.

kernels         kernels over plain arrays, on hard and easy data     CPU time
workloads       exact answers, projection on buckets                 CPU time
policies        distances, quotients, the kernels below them         CPU time
transformed     quotients, choice of a strategy, policy graphs       CPU time
mechanisms      whole releases, and the registry one by one          wall time
memory          peak of a release, and what it adds to a small one
cold_start      import and first release in a new process
accuracy        error on generated data: a speed-up that costs it must show
"""
