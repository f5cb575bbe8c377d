"""Kernels that ignore a demand of their statement: the exercise, the words, the answer."""

KERNELS = [
    (
        "one-thread-each",
        "Each thread fills one element of `out`",
        """
        @cuda.kernel
        def axpy(a, x, y, out, n):
            if cuda.grid(1) == 0:
                for i in range(n):
                    out[i] = a * x[i] + y[i]
        """,
    ),
    (
        "grid-stride",
        "the one that lies as many further as there are threads in the whole launch",
        """
        @cuda.kernel
        def squares(x, out, n):
            n_threads = cuda.gridDim.x * cuda.blockDim.x
            size = (n + n_threads - 1) // n_threads
            first = cuda.grid(1) * size
            for i in range(first, min(first + size, n)):
                out[i] = x[i] * x[i]
        """,
    ),
    (
        "grid-stride",
        "each thread takes its first element",
        """
        @cuda.kernel
        def squares(x, out, n):
            if cuda.grid(1) == 0:
                for i in range(n):
                    out[i] = x[i] * x[i]
        """,
    ),
    (
        "add-bias",
        "one thread for each element of the matrix",
        """
        @cuda.kernel
        def add_bias(x, bias, out, rows, columns):
            column, row = cuda.grid(2)
            if row == 0 and column == 0:
                for i in range(rows):
                    for j in range(columns):
                        out[i, j] = x[i, j] + bias[j]
        """,
    ),
    (
        "racing-sum",
        "Each thread still adds one element",
        """
        @cuda.kernel
        def total(x, out, n):
            if cuda.grid(1) == 0:
                for i in range(n):
                    out[0] += x[i]
        """,
    ),
    (
        "racing-sum",
        "Each thread still adds one element",
        """
        @cuda.kernel
        def total(x, out, n):
            first = cuda.blockIdx.x * cuda.blockDim.x
            if cuda.threadIdx.x == 0:
                sum = x[0] * 0
                for i in range(first, min(n, first + cuda.blockDim.x)):
                    sum += x[i]
                cuda.atomic_add(out, 0, sum)
        """,
    ),
    (
        "tree-sum",
        "four threads add, then two, then one",
        """
        @cuda.kernel
        def block_sums(x, out, n):
            part = cuda.shared(8, tk.float32)
            t = cuda.threadIdx.x
            i = cuda.grid(1)
            part[t] = x[i] if i < n else 0.0
            for _ in range(3):
                cuda.syncthreads()
            if t == 0:
                left = part[0] + part[1] + part[2] + part[3]
                out[cuda.blockIdx.x] = left + part[4] + part[5] + part[6] + part[7]
        """,
    ),
    (
        "tree-sum",
        "four threads add, then two, then one",
        """
        @cuda.kernel
        def block_sums(x, out, n):
            part = cuda.shared(8, tk.float32)
            t = cuda.threadIdx.x
            i = cuda.grid(1)
            part[t] = x[i] if i < n else 0.0
            half = 4
            while half > 0:
                cuda.syncthreads()
                if t == 0:
                    part[0] += part[half]
                    if half > 1:
                        part[1] += part[half + 1]
                    if half > 2:
                        part[2] += part[half + 2]
                        part[3] += part[half + 3]
                half = half // 2
            if t == 0:
                out[cuda.blockIdx.x] = part[0]
        """,
    ),
    (
        "tree-sum",
        "four threads add, then two, then one",
        """
        @cuda.kernel
        def block_sums(x, out, n):
            part = cuda.shared(8, tk.float32)
            t = cuda.threadIdx.x
            i = cuda.grid(1)
            part[t] = x[i] if i < n else 0.0
            total = 0.0
            for k in range(8):
                cuda.syncthreads()
                total += part[k]
            if t == 0:
                out[cuda.blockIdx.x] = total
        """,
    ),
    (
        "tree-sum",
        "in three rounds",
        """
        @cuda.kernel
        def block_sums(x, out, n):
            if cuda.threadIdx.x == 0:
                first = cuda.blockIdx.x * cuda.blockDim.x
                total = 0.0
                for i in range(first, min(first + 8, n)):
                    total += x[i]
                out[cuda.blockIdx.x] = total
        """,
    ),
    (
        "tiled-matmul",
        "each number is read from global memory once for 4 threads",
        """
        @cuda.kernel
        def matmul(a, b, out, n):
            left = cuda.shared((4, 4), tk.float32)
            tx = cuda.threadIdx.x
            ty = cuda.threadIdx.y
            column, row = cuda.grid(2)
            value = 0.0
            for tile in range(n // 4):
                left[ty, tx] = a[row, 4 * tile + tx]
                cuda.syncthreads()
                for k in range(4):
                    value += left[ty, k] * b[4 * tile + k, column]
                cuda.syncthreads()
            out[row, column] = value
        """,
    ),
    (
        "softmax-rows",
        "its 4 threads share the columns",
        """
        @cuda.kernel
        def softmax(x, out, columns):
            row = cuda.blockIdx.x
            if cuda.threadIdx.x == 0:
                top = x[row, 0]
                for j in range(columns):
                    top = max(top, x[row, j])
                whole = 0.0
                for j in range(columns):
                    whole += math.exp(x[row, j] - top)
                for j in range(columns):
                    out[row, j] = math.exp(x[row, j] - top) / whole
        """,
    ),
    (
        "softmax-rows",
        "thread `t` takes `t`, `t + 4`, `t + 8`",
        """
        @cuda.kernel
        def softmax(x, out, columns):
            row = cuda.blockIdx.x
            size = (columns + 3) // 4
            first = cuda.threadIdx.x * size
            largest = x[row, 0]
            for j in range(columns):
                largest = max(largest, x[row, j])
            whole = 0.0
            for j in range(columns):
                whole += math.exp(x[row, j] - largest)
            for j in range(first, min(columns, first + size)):
                out[row, j] = math.exp(x[row, j] - largest) / whole
        """,
    ),
    (
        "exclusive-scan",
        "16 threads do it in four rounds",
        """
        @cuda.kernel
        def exclusive_scan(x, out, n):
            t = cuda.threadIdx.x
            if t < n:
                total = 0.0
                for j in range(t):
                    total += x[j]
                out[t] = total
        """,
    ),
    (
        "exclusive-scan",
        "the reads of `x`, at most two for each element",
        """
        @cuda.kernel
        def exclusive_scan(x, out, n):
            t = cuda.threadIdx.x
            total = 0.0
            for j in range(min(t, n)):
                total += x[j]
            for _ in range(4):
                cuda.syncthreads()
            if t < n:
                out[t] = total
        """,
    ),
    (
        "exclusive-scan",
        "in four rounds",
        """
        @cuda.kernel
        def exclusive_scan(x, out, n):
            part = cuda.shared(16, tk.float32)
            t = cuda.threadIdx.x
            part[t] = 0.0
            if t < n:
                part[t] = x[t]
            for _ in range(4):
                cuda.syncthreads()
            total = 0.0
            for j in range(t):
                total += part[j]
            if t < n:
                out[t] = total
        """,
    ),
    (
        "exclusive-scan",
        "in four rounds",
        """
        @cuda.kernel
        def exclusive_scan(x, out, n):
            total = 0.0
            if cuda.threadIdx.x == 0:
                for i in range(n):
                    out[i] = total
                    total += x[i]
            for _ in range(4):
                cuda.syncthreads()
        """,
    ),
    (
        "exclusive-scan",
        "16 threads do it in four rounds",
        """
        @cuda.kernel
        def exclusive_scan(x, out, n):
            part = cuda.shared(16, tk.float32)
            t = cuda.threadIdx.x
            part[t] = 0.0
            if t < n:
                part[t] = x[t]
            total = 0.0
            for j in range(16):
                cuda.syncthreads()
                if j < t:
                    total += part[j]
            if t < n:
                out[t] = total
        """,
    ),
    (
        "own-relu",
        "at most two",
        """
        def my_relu(x):
            @cuda.kernel
            def nothing(x, n):
                i = cuda.grid(1)

            nothing[1, 1](x.reshape(-1), x.numel())
            return x * (x > 0)
        """,
    ),
    (
        "own-relu",
        "The elements stay on the device",
        """
        def my_relu(x):
            @cuda.kernel
            def nothing(x, n):
                i = cuda.grid(1)

            nothing[1, 1](x.reshape(-1), x.numel())
            larger = [max(element, 0.0) for element in x.reshape(-1).tolist()]
            return tk.tensor(larger, device="cuda").reshape(x.shape)
        """,
    ),
    (
        "own-relu",
        "a function that launches a kernel",
        """
        def my_relu(x):
            @cuda.kernel
            def nothing(x, n):
                i = cuda.grid(1)

            nothing[1, 1](x.reshape(-1), x.numel())
            return x.clamp(min=0)
        """,
    ),
    (
        "own-relu",
        "a function that launches a kernel",
        """
        def my_relu(x):
            return x.clamp(min=0)
        """,
    ),
    (
        "one-thread-each",
        "Each thread fills one element of `out`",
        """
        @cuda.kernel
        def axpy(a, x, y, out, n):
            if cuda.blockIdx.x == 0:
                for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                    out[i] = a * x[i] + y[i]
        """,
    ),
    (
        "one-thread-each",
        "`out` is filled",
        """
        @cuda.kernel
        def axpy(a, x, y, out, n):
            i = cuda.grid(1)
            if i < n:
                out[i] += a * x[i] + y[i] + 1
        """,
    ),
    (
        "tree-sum",
        "becomes the sum of the elements",
        """
        @cuda.kernel
        def block_sums(x, out, n):
            part = cuda.shared(8, tk.float32)
            t = cuda.threadIdx.x
            i = cuda.grid(1)
            part[t] = x[i] if i < n else 0.0
            half = 4
            while half > 0:
                cuda.syncthreads()
                if t < half:
                    part[t] += part[t + half]
                half = half // 2
            if t == 0:
                out[cuda.blockIdx.x] += part[0] + 1.0
        """,
    ),
    (
        "grid-stride",
        "each thread takes its first element",
        """
        @cuda.kernel
        def squares(x, out, n):
            if cuda.blockIdx.x == 0:
                for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
                    out[i] = x[i] * x[i]
        """,
    ),
    (
        "racing-sum",
        "Each thread still adds one element",
        """
        @cuda.kernel
        def total(x, out, n):
            if cuda.grid(1) < 3:
                for i in range(cuda.grid(1), n, 3):
                    cuda.atomic_add(out, 0, x[i])
        """,
    ),
    (
        "racing-sum",
        "Each thread still adds one element",
        """
        @cuda.kernel
        def total(x, out, n):
            i = cuda.grid(1)
            if i % 2 == 0:
                for j in range(i, min(n, i + 2)):
                    cuda.atomic_add(out, 0, x[j])
        """,
    ),
    (
        "softmax-rows",
        "The largest element of the row is taken off",
        """
        @cuda.kernel
        def softmax(x, out, columns):
            t = cuda.threadIdx.x
            row = cuda.blockIdx.x
            largest = x[0, 0]
            for i in range(cuda.gridDim.x):
                for j in range(columns):
                    largest = max(largest, x[i, j])
            whole = 0.0
            for j in range(columns):
                whole += math.exp(x[row, j] - largest)
            for j in range(t, columns, 4):
                out[row, j] = math.exp(x[row, j] - largest) / whole
        """,
    ),
    (
        "own-relu",
        "the larger of 0 and each element",
        """
        def my_relu(x):
            @cuda.kernel
            def clamped(x, out, n):
                i = cuda.grid(1)
                if i < n and x[i] > 0.0:
                    out[i] = x[i]

            out = tk.empty_like(x)
            clamped[x.numel() // 64 + 1, 64](x.reshape(-1), out.reshape(-1), x.numel())
            return out
        """,
    ),
    *(
        (
            "own-relu",
            words,
            f"""
        def my_relu(x):
            @cuda.kernel
            def clamped(x, out, n):
                i = cuda.grid(1)
                if i < n:
                    out[i] = {value}

            out = tk.empty_like(x)
            clamped[{blocks}, {threads}](x.reshape(-1), out.reshape(-1), x.numel())
            return out
        """,
        )
        for words, value, blocks, threads in (
            ("of any shape", "max(x[i], 0.0)", 1, 1024),
            ("of any shape", "max(x[i], 0.0)", 64, 64),
            ("0 for `-inf` too", "x[i] * (x[i] > 0.0)", "x.numel() // 64 + 1", 64),
            ("0 for `-inf` too", "0.5 * (x[i] + abs(x[i]))", "x.numel() // 64 + 1", 64),
        )
    ),
]
