module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<128x256xf32>, %arg1: tensor<f32>, %arg2: tensor<128xi64>, %arg3: tensor<f32>) -> (tensor<128x256xf32>) {
    %1 = "stablehlo.reshape"(%arg2) : (tensor<128xi64>) -> tensor<128x1xi64>
    %2 = "stablehlo.constant"() {value = dense<-100> : tensor<128x1xi64>} : () -> tensor<128x1xi64>
    %3 = "stablehlo.compare"(%1, %2) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<128x1xi64>, tensor<128x1xi64>) -> tensor<128x1xi1>
    %4 = "stablehlo.constant"() {value = dense<0> : tensor<128x1xi64>} : () -> tensor<128x1xi64>
    %5 = "stablehlo.constant"() {value = dense<255> : tensor<128x1xi64>} : () -> tensor<128x1xi64>
    %6 = "stablehlo.compare"(%1, %5) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<128x1xi64>, tensor<128x1xi64>) -> tensor<128x1xi1>
    %7 = "stablehlo.compare"(%1, %4) {comparison_direction = #stablehlo<comparison_direction GE>} : (tensor<128x1xi64>, tensor<128x1xi64>) -> tensor<128x1xi1>
    %8 = "stablehlo.and"(%7, %6) : (tensor<128x1xi1>, tensor<128x1xi1>) -> tensor<128x1xi1>
    %9 = "stablehlo.not"(%3) : (tensor<128x1xi1>) -> tensor<128x1xi1>
    %10 = "stablehlo.or"(%9, %8) : (tensor<128x1xi1>, tensor<128x1xi1>) -> tensor<128x1xi1>
    %11 = "stablehlo.maximum"(%1, %4) : (tensor<128x1xi64>, tensor<128x1xi64>) -> tensor<128x1xi64>
    %12 = "stablehlo.minimum"(%11, %5) : (tensor<128x1xi64>, tensor<128x1xi64>) -> tensor<128x1xi64>
    %13 = "stablehlo.convert"(%12) : (tensor<128x1xi64>) -> tensor<128x1xi32>
    %14 = "stablehlo.constant"() {value = dense<1.0> : tensor<128x1xf32>} : () -> tensor<128x1xf32>
    %15 = "stablehlo.constant"() {value = dense<0.0> : tensor<128x1xf32>} : () -> tensor<128x1xf32>
    %16 = "stablehlo.select"(%3, %14, %15) : (tensor<128x1xi1>, tensor<128x1xf32>, tensor<128x1xf32>) -> tensor<128x1xf32>
    %17 = "stablehlo.divide"(%arg1, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %18 = "stablehlo.broadcast_in_dim"(%17) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<128x1xf32>
    %19 = "stablehlo.multiply"(%18, %16) : (tensor<128x1xf32>, tensor<128x1xf32>) -> tensor<128x1xf32>
    %20 = "stablehlo.negate"(%19) : (tensor<128x1xf32>) -> tensor<128x1xf32>
    %21 = "stablehlo.and"(%3, %10) : (tensor<128x1xi1>, tensor<128x1xi1>) -> tensor<128x1xi1>
    %22 = "stablehlo.select"(%21, %20, %15) : (tensor<128x1xi1>, tensor<128x1xf32>, tensor<128x1xf32>) -> tensor<128x1xf32>
    %26 = "stablehlo.constant"() {value = dense<0.0> : tensor<128x256x1xf32>} : () -> tensor<128x256x1xf32>
    %23 = "stablehlo.broadcast_in_dim"(%13) {broadcast_dimensions = array<i64: 0, 2>} : (tensor<128x1xi32>) -> tensor<128x256x1xi32>
    %24 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<128x256x1xi32>
    %25 = "stablehlo.compare"(%24, %23) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<128x256x1xi32>, tensor<128x256x1xi32>) -> tensor<128x256x1xi1>
    %27 = "stablehlo.broadcast_in_dim"(%22) {broadcast_dimensions = array<i64: 0, 2>} : (tensor<128x1xf32>) -> tensor<128x256x1xf32>
    %28 = "stablehlo.select"(%25, %27, %26) : (tensor<128x256x1xi1>, tensor<128x256x1xf32>, tensor<128x256x1xf32>) -> tensor<128x256x1xf32>
    %29 = "stablehlo.reshape"(%28) : (tensor<128x256x1xf32>) -> tensor<128x256xf32>
    %37 = "stablehlo.reshape"(%22) : (tensor<128x1xf32>) -> tensor<128xf32>
    %38 = "stablehlo.broadcast_in_dim"(%37) {broadcast_dimensions = array<i64: 0>} : (tensor<128xf32>) -> tensor<128x256xf32>
    %39 = "stablehlo.exponential"(%arg0) : (tensor<128x256xf32>) -> tensor<128x256xf32>
    %40 = "stablehlo.multiply"(%39, %38) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    %41 = "stablehlo.subtract"(%29, %40) : (tensor<128x256xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
    "func.return"(%41) : (tensor<128x256xf32>) -> ()
  }
}
